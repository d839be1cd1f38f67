// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/call_emission.h"

#include <gtest/gtest.h>

#include "tests/cc/expand/expansion.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionDefHelper;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

// What stands for a call.

TEST(CallEmissionTest, SitesHaveACallPerArgumentAndAReturnPerOutput) {
  GraphBuilder builder;
  builder.Const("a").Const("b").Call("y", "Swap", {"a", "b"}, {kInt, kInt}, {kInt, kInt});
  builder.Node("z", "AddV2", {"y", "y:1"}, {{"T", kInt}});
  builder.Function(FunctionDefHelper::Create("Swap", {"a: int32", "b: int32"}, {"c: int32", "d: int32"}, {}, {},
                                             {{"c", "b"}, {"d", "a"}}));
  const GraphDef expanded = Expand(builder.graph(), {"z:0"});
  EXPECT_EQ(InputsOf(expanded, "y/call_0"), Inputs{"a"});
  EXPECT_EQ(InputsOf(expanded, "y/call_1"), Inputs{"b"});
  EXPECT_EQ(InputsOf(expanded, "y/return_0"), (Inputs{"recursion_keep_alive/Swap", "y/calls", "^y/call_0"}));
  EXPECT_EQ(InputsOf(expanded, "y/return_1"), (Inputs{"recursion_keep_alive/Swap", "y/calls", "^y/call_0"}));
  EXPECT_EQ(InputsOf(expanded, "y/calls"), Inputs{"^y/call_1"});
  EXPECT_EQ(InputsOf(expanded, "z"), (Inputs{"y/return_0", "y/return_1"}));
  EXPECT_EQ(CallId(expanded, "y/call_0"), CallId(expanded, "y/return_1"));
}

TEST(CallEmissionTest, SitesHaveTheirOwnIds) {
  const GraphDef expanded = Expand(CallAndReader().graph(), {"z:0"});
  EXPECT_EQ(CallId(expanded, "y/call_0"), 1);
  EXPECT_EQ(CallId(expanded, "F/call/call_0"), 2);
}

TEST(CallEmissionTest, CallsTakeTheControlInputsOfTheSite) {
  GraphBuilder builder = CallAndReader();
  builder.Const("first").Call("later", "F", {"x", "^first"});
  EXPECT_EQ(InputsOf(Expand(builder.graph(), {"later:0"}), "later/call_0"), (Inputs{"x", "^first"}));
}

TEST(CallEmissionTest, StatedShapesStay) {
  GraphBuilder builder = CallAndReader();
  GraphDef graph = builder.graph();
  NodeDef* call = graph.mutable_node(1);
  (*call->mutable_attr())["output_shapes"].mutable_list()->add_shape()->add_dim()->set_size(3);
  const GraphDef expanded = Expand(graph, {"z:0"});
  EXPECT_EQ(Find(expanded, "y/return_0")->attr().at("shape").shape().dim(0).size(), 3);
  EXPECT_TRUE(Find(expanded, "F/call/return_0")->attr().at("shape").shape().unknown_rank());
}

TEST(CallEmissionTest, CallsWithoutArgumentsOpenTheFrameByAConstant) {
  GraphBuilder builder;
  builder.Const("first").Call("y", "F", {"^first"}, {});
  builder.Function(
      FunctionDefHelper::Create("F", {}, {"r: int32"}, {}, {BodyCall("call", "F", {}, {})}, {{"r", "call:results:0"}}));
  const GraphDef expanded = Expand(builder.graph(), {"y:0"});
  EXPECT_EQ(Find(expanded, "y/call")->attr().at("value").tensor().dtype(), tensorflow::DT_BOOL);
  EXPECT_EQ(InputsOf(expanded, "y/call"), Inputs{"^first"});
  EXPECT_EQ(InputsOf(expanded, "F/call/call"), Inputs{"^F/recursion_frame_start"});
  EXPECT_EQ(Names(NodesOf(expanded, kEntryOp)), (std::set<std::string>{"F/recursion_start"}));
}

// What comes from outside of a loop lives in the iteration too that finds the condition false.
TEST(CallEmissionTest, ArgumentsFromOutsideOfALoopWaitForItsCondition) {
  const auto two =
      FunctionDefHelper::Create("G", {"a: int32", "b: int32"}, {"r: int32"}, {},
                                {BodyCall("call", "G", {"a", "b"}, {kInt, kInt})}, {{"r", "call:results:0"}});
  GraphBuilder builder;
  builder.Const("x").Function(two);
  AddLoop(&builder, "outer", "x");
  AddLoop(&builder, "inner", "outer/next");
  const Attrs constant = {{"T", kInt}, {"frame_name", "inner_frame"}, {"is_constant", true}};
  builder.Node("x_in_outer", "Enter", {"x"}, {{"T", kInt}, {"frame_name", "outer_frame"}, {"is_constant", true}});
  builder.Node("x_in_inner", "Enter", {"x_in_outer"}, constant);
  builder.Call("a", "G", {"inner/next", "x_in_inner"}, {kInt, kInt})
      .Call("b", "G", {"x_in_outer", "inner/exit"}, {kInt, kInt});
  builder.Call("c", "G", {"outer/merge", "x_in_outer"}, {kInt, kInt});  // before the condition
  builder.Node("inner/iterate", "NextIteration", {"a"}, {{"T", kInt}});
  builder.Node("both", "AddV2", {"b", "c"}, {{"T", kInt}});
  builder.Node("outer/iterate", "NextIteration", {"both"}, {{"T", kInt}});
  const GraphDef expanded = Expand(builder.graph(), {"outer/exit:0"});

  EXPECT_EQ(InputsOf(expanded, "a/call_0"), Inputs{"inner/next"});
  EXPECT_EQ(InputsOf(expanded, "a/call_1"), (Inputs{"x_in_inner", "^inner/cond/call_pivot"}));
  EXPECT_EQ(InputsOf(expanded, "b/call_0"), (Inputs{"x_in_outer", "^outer/cond/call_pivot"}));
  EXPECT_EQ(InputsOf(expanded, "b/call_1"), Inputs{"inner/exit"});
  EXPECT_EQ(InputsOf(expanded, "c/call_1"), Inputs{"x_in_outer"});
  EXPECT_EQ(InputsOf(expanded, "outer/cond/call_pivot"), Inputs{"outer/cond/call_switch:1"});
  EXPECT_EQ(InputsOf(expanded, "outer/cond/call_switch"), (Inputs{"outer/cond", "outer/cond"}));
}

// Fetched, fed and awaited calls.

TEST(CallEmissionTest, NobodyElseKeepsTheNameOfACall) {
  const GraphDef expanded = Expand(CallAndReader().graph(), {"z:0"});
  EXPECT_EQ(Find(expanded, "y"), nullptr);
  EXPECT_EQ(InputsOf(expanded, "z"), Inputs{"y/return_0"});
}

TEST(CallEmissionTest, FetchedCallsKeepTheirName) {
  const GraphDef expanded = Expand(CallAndReader().graph(), {"y:0", "z:0"});
  EXPECT_EQ(Find(expanded, "y")->op(), "Identity");
  EXPECT_EQ(InputsOf(expanded, "y"), Inputs{"y/return_0"});
  EXPECT_EQ(InputsOf(expanded, "z"), Inputs{"y/return_0"});
}

TEST(CallEmissionTest, ConsumersOfFedCallsReadWhatIsFed) {
  const GraphDef expanded = Expand(CallAndReader().graph(), {"z:0"}, {"y:0"});
  EXPECT_EQ(Find(expanded, "y")->op(), "Identity");
  EXPECT_EQ(InputsOf(expanded, "z"), Inputs{"y"});
}

// F(n) = (n, F(n)[1]): two outputs that have nothing to do with each other.
GraphBuilder TwoOutputs() {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"}, {kInt}, {kInt, kInt});
  builder.Function(FunctionDefHelper::Create("F", {"n: int32"}, {"a: int32", "b: int32"}, {},
                                             {BodyCall("call", "F", {"n"}, {kInt}, {kInt, kInt})},
                                             {{"a", "n"}, {"b", "call:results:1"}}));
  return builder;
}

TEST(CallEmissionTest, OutputsThatNobodyNeedsAreLeftOut) {
  const GraphDef first = Expand(TwoOutputs().graph(), {"y:0"});
  EXPECT_EQ(Names(NodesOf(first, kResultOp)), (std::set<std::string>{"F/a"}));
  EXPECT_EQ(Find(first, "F/call/call_0"), nullptr) << "the recursion serves only the other output";
}

TEST(CallEmissionTest, FetchingOneOutputDoesNotWaitForAnother) {
  const GraphDef second = Expand(TwoOutputs().graph(), {"y:1"});
  EXPECT_EQ(InputsOf(second, "y"), (Inputs{"y/return_1", "y/return_1"}));
  EXPECT_EQ(Names(NodesOf(second, kResultOp)), (std::set<std::string>{"F/b"}));
}

TEST(CallEmissionTest, FetchingTheNodeTakesAllOutputs) {
  EXPECT_EQ(InputsOf(Expand(TwoOutputs().graph(), {"y"}), "y"), (Inputs{"y/return_0", "y/return_1"}));
}

TEST(CallEmissionTest, ControlConsumersWaitForAllOutputs) {
  GraphBuilder builder = TwoOutputs();
  builder.Node("after", "NoOp", {"^y"});
  const GraphDef expanded = Expand(builder.graph(), {"after"});
  EXPECT_EQ(Find(expanded, "y")->op(), "NoOp");
  EXPECT_EQ(InputsOf(expanded, "y"), (Inputs{"^y/return_0", "^y/return_1"}));
}

}  // namespace
}  // namespace tensorflow_recursion
