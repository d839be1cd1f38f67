// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/hold_calls.h"

#include <string>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tests/cc/base/graphs.h"
#include "tests/cc/expand/expansion.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionDef;
using tensorflow::FunctionDefHelper;
using tensorflow::GraphDef;

Attrs OfInt() { return {{"T", kInt}}; }

Attrs CallOf(const std::string& function, const Types& in = kInts) {
  return {{"f", FunctionDefHelper::FunctionRef(function)},
          {"Tin", tensorflow::DataTypeSlice(in)},
          {"Tout", tensorflow::DataTypeSlice(kInts)}};
}

// The same graph with its calls held.
GraphDef Held(const GraphBuilder& builder) {
  GraphDef graph = builder.graph();
  const tensorflow::FunctionLibraryDefinition library(tensorflow::OpRegistry::Global(), graph.library());
  HoldCalls(library, [](const tensorflow::NodeDef&) { return true; }, graph.mutable_node());
  EXPECT_TRUE(Construct(graph).ok());
  return graph;
}

// A loop whose body is a call of a function of its variable and of "weight", which enters it once.
GraphBuilder LoopAroundCall(const Inputs& call_inputs = {"loop/next", "loop/weight"}) {
  GraphBuilder builder;
  builder.Const("x").Const("weight");
  AddLoop(&builder, "loop", "x");
  builder.Node("loop/weight", "Enter", {"weight"}, {{"T", kInt}, {"frame_name", "loop_frame"}, {"is_constant", true}});
  builder.Node("call", "PartitionedCall", call_inputs, CallOf("H", {kInt, kInt}));
  builder.Node("loop/iterate", "NextIteration", {"call"}, OfInt());
  return builder;
}

GraphBuilder BranchWithCall() {
  GraphBuilder builder;
  builder.Const("x").Node("p", "Const", {}, {{"dtype", tensorflow::DT_BOOL}, {"value", tensorflow::Tensor(true)}});
  builder.Node("switch", "Switch", {"x", "p"}, OfInt()).Node("negative", "Neg", {"switch:1"}, OfInt());
  builder.Node("call", "StatefulPartitionedCall", {"negative"}, CallOf("H"));
  return builder.Node("merge", "Merge", {"switch", "call"}, {{"T", kInt}, {"N", 2}});
}

TEST(HoldCallsTest, LeavesGraphsWithoutControlFlowAlone) {
  GraphBuilder builder;
  builder.Const("x").Node("call", "PartitionedCall", {"x"}, CallOf("H"));
  EXPECT_EQ(InputsOf(Held(builder), "call"), Inputs{"x"});
}

TEST(HoldCallsTest, ACallInALoopWaitsForTheIteration) {
  const GraphDef held = Held(LoopAroundCall());
  EXPECT_EQ(InputsOf(held, "call"), (Inputs{"loop/next", "loop/weight", "^loop/switch/side"}));
  EXPECT_EQ(InputsOf(held, "loop/switch/side"), Inputs{"loop/switch:1"});
}

TEST(HoldCallsTest, ACallThatReadsWhatEntersOnceWaitsForThatIfThereIsNothingElse) {
  EXPECT_EQ(InputsOf(Held(LoopAroundCall({"loop/weight", "loop/weight"})), "call"),
            (Inputs{"loop/weight", "loop/weight", "^loop/weight"}));
}

TEST(HoldCallsTest, ACallThatWaitsStaysAsItIs) {
  const Inputs inputs = {"loop/next", "loop/weight", "^loop/next"};
  EXPECT_EQ(InputsOf(Held(LoopAroundCall(inputs)), "call"), inputs);
}

TEST(HoldCallsTest, ACallInTheConditionOfALoopWaitsForItsMerge) {
  const Inputs inputs = {"loop/limit", "loop/limit"};
  EXPECT_EQ(InputsOf(Held(LoopAroundCall(inputs)), "call"), (Inputs{"loop/limit", "loop/limit", "^loop/merge"}));
}

TEST(HoldCallsTest, ACallBehindALoopWaitsForNothingInIt) {
  GraphBuilder builder = LoopAroundCall();
  builder.Node("after", "PartitionedCall", {"loop/exit"}, CallOf("H"));
  EXPECT_EQ(InputsOf(Held(builder), "after"), (Inputs{"loop/exit", "^loop/exit"}));
}

TEST(HoldCallsTest, ACallInABranchWaitsForTheSideThatIsTaken) {
  const GraphDef held = Held(BranchWithCall());
  EXPECT_EQ(InputsOf(held, "call"), (Inputs{"negative", "^switch/side"}));
  EXPECT_EQ(InputsOf(held, "switch/side"), Inputs{"switch:1"});
}

TEST(HoldCallsTest, ACallInACaseWaitsForItsBranch) {
  GraphBuilder builder;
  builder.Const("x").Const("i").Node("switch", "_SwitchN", {"x", "i"}, {{"T", kInt}, {"num_outs", 3}});
  builder.Node("call", "PartitionedCall", {"switch:2"}, CallOf("H"));
  const GraphDef held = Held(builder);
  EXPECT_EQ(InputsOf(held, "call"), (Inputs{"switch:2", "^switch/side"}));
  EXPECT_EQ(InputsOf(held, "switch/side"), Inputs{"switch:2"});
}

TEST(HoldCallsTest, CallsShareTheSidesThatTheyWaitFor) {
  GraphBuilder builder = BranchWithCall();
  builder.Const("switch/side").Node("again", "PartitionedCall", {"negative"}, CallOf("H"));
  const GraphDef held = Held(builder);
  for (const char* call : {"call", "again"}) EXPECT_EQ(InputsOf(held, call), (Inputs{"negative", "^switch/side_1"}));
}

TEST(HoldCallsTest, TakesSwitchesWithoutAType) {
  GraphDef graph = BranchWithCall().graph();
  for (tensorflow::NodeDef& node : *graph.mutable_node()) {
    if (node.op() == "Switch") node.clear_attr();
  }
  HoldCalls(
      tensorflow::FunctionLibraryDefinition(tensorflow::OpRegistry::Global(), graph.library()),
      [](const tensorflow::NodeDef&) { return true; }, graph.mutable_node());
  EXPECT_EQ(InputsOf(graph, "call"), (Inputs{"negative", "^switch"}));
}

// Constants of callees stay where their calls are.

// H(a, b) = a * b + 7
FunctionDef WithConstant() {
  return FunctionDefHelper::Create("H", {"a: int32", "b: int32"}, {"r: int32"}, {},
                                   {BodyConst("seven", 7), MakeBodyNode("product", "Mul", {"a", "b"}, OfInt()),
                                    MakeBodyNode("sum", "AddV2", {"product:z:0", "seven:output:0"}, OfInt())},
                                   {{"r", "sum:z:0"}});
}

// A function of which the optimizers of a dataset have lowered the loop, and taken the wait of the call in it.
FunctionDef WithLoop(const std::string& name) {
  return FunctionDefHelper::Create(
      name, {"n: int32", "weight: int32"}, {"r: int32"}, {},
      {MakeBodyNode("enter", "Enter", {"n"}, {{"T", kInt}, {"frame_name", "frame"}}),
       MakeBodyNode("once", "Enter", {"weight"}, {{"T", kInt}, {"frame_name", "frame"}, {"is_constant", true}}),
       MakeBodyNode("merge", "Merge", {"enter:output:0", "iterate:output:0"}, {{"T", kInt}, {"N", 2}}),
       MakeBodyNode("less", "Less", {"merge:output:0", "once:output:0"}, OfInt()),
       MakeBodyNode("cond", "LoopCond", {"less:z:0"}),
       MakeBodyNode("switch", "Switch", {"merge:output:0", "cond:output:0"}, OfInt()),
       BodyCall("inner", "F", {"switch:output_true:0", "once:output:0"}, {kInt, kInt}),
       MakeBodyNode("call", "PartitionedCall", {"inner:results:0", "once:output:0"}, CallOf("H", {kInt, kInt})),
       MakeBodyNode("iterate", "NextIteration", {"call:output:0"}, OfInt()),
       MakeBodyNode("exit", "Exit", {"switch:output_false:0"}, OfInt())},
      {{"r", "exit:output:0"}});
}

TEST(HoldCallsTest, ConstantsOfCalleesStayInALoopOfABody) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x", "x"}, {kInt, kInt}).Function(WithLoop("F")).Function(WithConstant());
  const GraphDef expanded = Expand(builder.graph(), {"y:0"});
  EXPECT_EQ(InputsOf(expanded, "F/switch/side"), Inputs{"F/switch:1"});
}

TEST(HoldCallsTest, CalleesStayInALoopOfAFunctionThatIsPutInTheBodyItself) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x", "x"}, {kInt, kInt}).Function(WithLoop("Loop")).Function(WithConstant());
  builder.Function(FunctionDefHelper::Create(
      "F", {"n: int32", "weight: int32"}, {"r: int32"}, {},
      {BodyConst("first"),
       MakeBodyNode("outer", "PartitionedCall", {"n", "weight", "^first"}, CallOf("Loop", {kInt, kInt}))},
      {{"r", "outer:output:0"}}));
  const GraphDef expanded = Expand(builder.graph(), {"y:0"});
  EXPECT_EQ(InputsOf(expanded, "F/outer/switch/side"), Inputs{"F/outer/switch:1"});
}

TEST(HoldCallsTest, ConstantResultsOfCalleesStayInABranch) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"});
  builder.Function(FunctionDefHelper::Create("H", {"a: int32"}, {"r: int32"}, {}, {BodyConst("seven", 7)},
                                             {{"r", "seven:output:0"}}));
  builder.Function(FunctionDefHelper::Create(
      "F", {"n: int32"}, {"r: int32"}, {},
      {BodyTrue("p"), MakeBodyNode("switch", "Switch", {"n", "p:output:0"}, OfInt()),
       BodyCall("inner", "F", {"switch:output_false:0"}),
       MakeBodyNode("call", "PartitionedCall", {"switch:output_true:0"}, CallOf("H")),
       MakeBodyNode("merge", "Merge", {"inner:results:0", "call:output:0"}, {{"T", kInt}, {"N", 2}})},
      {{"r", "merge:output:0"}}));
  const GraphDef expanded = Expand(builder.graph(), {"y:0"});
  const Inputs waits = InputsOf(expanded, "F/call/seven");
  ASSERT_EQ(waits.size(), 1);
  EXPECT_EQ(InputsOf(expanded, waits[0].substr(1)), Inputs{"^F/switch/side"});
  EXPECT_EQ(InputsOf(expanded, "F/switch/side"), Inputs{"F/switch:1"});
}

TEST(HoldCallsTest, ConstantResultsOfCalleesStayInABranchOfTheMainGraph) {
  GraphBuilder builder = BranchWithCall();
  builder.Function(Endless("F", "F"));
  builder.Function(FunctionDefHelper::Create("H", {"a: int32"}, {"r: int32"}, {},
                                             {BodyConst("seven", 7), BodyCall("y", "F", {"seven:output:0"})},
                                             {{"r", "y:results:0"}}));
  const GraphDef expanded = Expand(builder.graph(), {"merge:0"});
  const Inputs waits = InputsOf(expanded, "call/seven");
  ASSERT_EQ(waits.size(), 1);
  EXPECT_EQ(InputsOf(expanded, waits[0].substr(1)), Inputs{"^switch/side"});
}

}  // namespace
}  // namespace tensorflow_recursion
