// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/side_effects.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cc/expand/differentiated.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_VARIANT;
using tensorflow::FunctionDefHelper;
using tensorflow::GraphDef;

// The graph as it is if TensorFlow has put a node there in the place of a branch.
GraphDef WithInlined(const std::string& name, GraphDef graph) {
  for (tensorflow::NodeDef& node : *graph.mutable_node()) {
    if (node.name() == name) node.mutable_experimental_debug_info()->add_original_func_names("branch");
  }
  return graph;
}

TEST(SideEffectsTest, NothingWaitsForGradientCallsOfBranches) {
  GraphBuilder builder = Differentiated();
  builder.Node("z", "Identity", {"x", "^g"}, {{"T", kInt}});
  const GraphDef expanded = Expand(WithInlined("g", builder.graph()), {"z:0"});
  EXPECT_EQ(InputsOf(expanded, "z"), Inputs{"x"});
  EXPECT_TRUE(NodesOf(expanded, kCallOp).empty());
}

TEST(SideEffectsTest, NothingWaitsForGradientCallsThatAreReadAnyway) {
  GraphBuilder builder = Differentiated();
  builder.Node("z", "Identity", {"x", "^g"}, {{"T", kInt}});
  const GraphDef expanded = Expand(builder.graph(), {"z:0", "g:0"});
  EXPECT_EQ(InputsOf(expanded, "z"), Inputs{"x"});
  EXPECT_EQ(Find(expanded, "g/return_1"), nullptr);
}

TEST(SideEffectsTest, GradientsThatOnlySomebodyWaitsForAreComputed) {
  GraphBuilder builder = Differentiated();
  builder.Node("inner", "NoOp", {"^g"}).Node("group", "NoOp", {"^inner"});
  builder.Node("z", "Identity", {"x", "^g"}, {{"T", kInt}});
  const GraphDef grouped = Expand(builder.graph(), {"group"});
  EXPECT_EQ(InputsOf(grouped, "inner"), Inputs{"^g"});
  EXPECT_EQ(InputsOf(grouped, "g"), (Inputs{"^g/return_0", "^g/return_1"}));
  EXPECT_EQ(InputsOf(Expand(builder.graph(), {"z:0"}), "z"), (Inputs{"x", "^g"}));
}

TEST(SideEffectsTest, GradientsThatOnlySomebodyInABodyWaitsForAreComputed) {
  GraphBuilder builder = Differentiated();
  builder.Call("e", "E", {"x"});
  builder.Function(FunctionDefHelper::Create(
      "E", {"n: int32"}, {"r: int32"}, {},
      {MakeBodyNode("y", kInvokeOp, {"n"}, ForwardAttrs()),
       MakeBodyNode("g", kInvokeOp, {"y:record:0", "n"},
                    GraphBuilder::CallAttrs("F__backward1", {DT_VARIANT, kInt}, {kInt, kInt})),
       MakeBodyNode("same", "Identity", {"n", "^g"}, {{"T", kInt}})},
      {{"r", "same:output:0"}}));
  EXPECT_EQ(InputsOf(Expand(builder.graph(), {"e:0"}), "E/same"), (Inputs{"E/n", "^E/g"}));
}

TEST(SideEffectsTest, ReadersOfOneOutputDoNotWaitForAnother) {
  GraphBuilder builder = Differentiated();
  builder.Node("z", "Identity", {"g:0", "^g"}, {{"T", kInt}});
  const GraphDef expanded = Expand(builder.graph(), {"z:0"});
  EXPECT_EQ(InputsOf(expanded, "z"), Inputs{"g/return_0"});
  EXPECT_EQ(Find(expanded, "g/return_1"), nullptr);
}

TEST(SideEffectsTest, ConstantsThatWaitedForAGradientStayWhereItIsCalled) {
  GraphBuilder builder = Differentiated();
  builder.Const("direct", 1, {"^g"}).Node("join", "NoOp", {"^g"}).Const("joined", 1, {"^join"});
  builder.Const("chained", 1, {"^joined"});
  const GraphDef expanded = Expand(WithInlined("g", builder.graph()), {"direct:0", "chained:0"});
  for (const char* node : {"direct", "joined"}) EXPECT_EQ(InputsOf(expanded, node), Inputs{"^dy"}) << node;
  EXPECT_EQ(InputsOf(expanded, "chained"), Inputs{"^joined"});
  EXPECT_EQ(Find(expanded, "g/return_0"), nullptr);
}

TEST(SideEffectsTest, ConstantsWaitForTheSideOfASwitchThatAGradientReads) {
  GraphBuilder builder = Differentiated();
  builder.Node("p", "Const", {}, {{"dtype", tensorflow::DT_BOOL}, {"value", tensorflow::Tensor(true)}});
  builder.Node("switch", "Switch", {"dy", "p"}, {{"T", kInt}});
  builder.Call("h", "F__backward1", {"y:1", "switch:1"}, {DT_VARIANT, kInt}, {kInt, kInt});
  builder.Const("a", 1, {"^h"}).Const("b", 2, {"^h"});
  const GraphDef expanded = Expand(WithInlined("h", builder.graph()), {"a:0", "b:0"});
  for (const char* node : {"a", "b"}) EXPECT_EQ(InputsOf(expanded, node), Inputs{"^switch/pivot"}) << node;
  EXPECT_EQ(InputsOf(expanded, "switch/pivot"), Inputs{"switch:1"});
}

TEST(SideEffectsTest, ConstantsWaitForTheBranchOfACaseThatAGradientReads) {
  GraphBuilder builder = Differentiated();
  builder.Const("i").Node("switch", "_SwitchN", {"dy", "i"}, {{"T", kInt}, {"num_outs", 3}});
  builder.Call("h", "F__backward1", {"y:1", "switch:2"}, {DT_VARIANT, kInt}, {kInt, kInt}).Const("a", 1, {"^h"});
  const GraphDef expanded = Expand(WithInlined("h", builder.graph()), {"a:0"});
  EXPECT_EQ(InputsOf(expanded, "a"), Inputs{"^switch/pivot"});
  EXPECT_EQ(InputsOf(expanded, "switch/pivot"), Inputs{"switch:2"});
}

TEST(SideEffectsTest, JoinsThatWaitForNothingElseAreDropped) {
  GraphBuilder builder = Differentiated();
  // The outer one comes first, so that its input is not known to be idle when it is looked at.
  builder.Node("outer", "NoOp", {"^inner", "^g"}).Node("inner", "NoOp", {"^g"});
  builder.Node("z", "Identity", {"x", "^outer"}, {{"T", kInt}});
  const GraphDef expanded = Expand(WithInlined("g", builder.graph()), {"z:0"});
  EXPECT_EQ(InputsOf(expanded, "z"), Inputs{"x"});
  EXPECT_EQ(Find(expanded, "inner"), nullptr);
  EXPECT_EQ(Find(expanded, "outer"), nullptr);
}

TEST(SideEffectsTest, JoinsThatWaitForOthersStay) {
  GraphBuilder builder = Differentiated();
  builder.Const("other").Node("join", "NoOp", {"^g", "^other"}).Node("idle", "NoOp");
  builder.Node("z", "Identity", {"x", "^join", "^idle"}, {{"T", kInt}});
  const GraphDef expanded = Expand(WithInlined("g", builder.graph()), {"z:0"});
  EXPECT_TRUE(HasInput(expanded, "z", "^join"));
  EXPECT_TRUE(HasInput(expanded, "z", "^idle")) << "it has never waited for a gradient";
  EXPECT_EQ(InputsOf(expanded, "join"), Inputs{"^other"});
}

TEST(SideEffectsTest, NothingInBodiesWaitsForGradientCallsOrRecords) {
  const GraphBuilder builder =
      DifferentiatedBy({RecallAll(), GradientCall(), MakeBodyNode("join", "NoOp", {"^inner"}),
                        MakeBodyNode("first", "Identity", {"dy", "^join", "^inner", "^recall"}, {{"T", kInt}})},
                       "first:output:0", "inner:results:0");
  const GraphDef expanded = Expand(builder.graph(), {"g:0"});
  EXPECT_EQ(InputsOf(expanded, "F__backward1/first"), Inputs{"F__backward1/dy"});
  for (const char* node : {"join", "inner/call_0", "recall"}) {
    EXPECT_EQ(Find(expanded, std::string("F__backward1/") + node), nullptr) << node;
  }
}

// The gradients between them come after the assertion, and nothing else orders it and the node that waits for them.
TEST(SideEffectsTest, WhoeverWaitedForGradientsStaysBehindTheirSideEffects) {
  const Attrs assert_attrs = {{"T", tensorflow::DataTypeSlice(kInts)}};
  GraphBuilder builder = Differentiated();
  builder.Node("true", "Const", {}, {{"dtype", tensorflow::DT_BOOL}, {"value", tensorflow::Tensor(true)}});
  builder.Node("assert", "Assert", {"true", "x"}, assert_attrs);
  builder.Node("late", "Identity", {"dy", "^assert"}, {{"T", kInt}});
  const std::vector<tensorflow::DataType> results = {kInt, kInt};
  builder.Call("first", "F__backward1", {"y:1", "dy", "^assert"}, {DT_VARIANT, kInt}, results);
  builder.Call("second", "F__backward1", {"y:1", "first:1"}, {DT_VARIANT, kInt}, results);
  builder.Call("third", "F__backward1", {"y:1", "late", "^second"}, {DT_VARIANT, kInt}, results);
  builder.Node("join", "NoOp", {"^third"});
  for (const char* wait : {"^second", "^third", "^join"}) {
    const std::string name = absl::StrCat("after_", wait + 1);
    builder.Node(name, "Identity", {"x", wait}, {{"T", kInt}});
  }
  const GraphDef expanded =
      Expand(builder.graph(), {"after_second:0", "after_third:0", "after_join:0", "second:0", "third:0"});
  EXPECT_EQ(InputsOf(expanded, "after_second"), (Inputs{"x", "^assert"}));
  for (const char* after : {"after_third", "after_join"}) {
    EXPECT_TRUE(HasInput(expanded, after, "^late") || HasInput(expanded, after, "^assert")) << after;
  }
}

// A constant that only a gradient keeps in its branch is not kept there by what comes before the branch.
TEST(SideEffectsTest, ConstantsBehindSideEffectsStayInTheirBranch) {
  GraphBuilder builder = Differentiated();
  builder.Node("p", "Const", {}, {{"dtype", tensorflow::DT_BOOL}, {"value", tensorflow::Tensor(true)}});
  builder.Node("assert", "Assert", {"p", "x"}, {{"T", tensorflow::DataTypeSlice(kInts)}});
  builder.Node("switch", "Switch", {"dy", "p", "^assert"}, {{"T", kInt}});
  builder.Call("h", "F__backward1", {"y:1", "switch:1", "^assert"}, {DT_VARIANT, kInt}, {kInt, kInt});
  builder.Const("a", 1, {"^h"});
  const GraphDef expanded = Expand(WithInlined("h", builder.graph()), {"a:0"});
  EXPECT_TRUE(HasInput(expanded, "a", "^switch/pivot"));
}

// An assignment after a gradient must not change what the gradient reads.
TEST(SideEffectsTest, SideEffectsWaitForGradientCalls) {
  const Attrs assert_attrs = {{"T", tensorflow::DataTypeSlice(kInts)}};
  GraphBuilder builder = Differentiated();
  builder.Node("true", "Const", {}, {{"dtype", tensorflow::DT_BOOL}, {"value", tensorflow::Tensor(true)}});
  builder.Node("direct", "Assert", {"true", "x", "^g"}, assert_attrs);
  const GraphDef direct = Expand(builder.graph(), {"direct"});
  EXPECT_EQ(InputsOf(direct, "direct"), (Inputs{"true", "x", "^g"}));
  EXPECT_EQ(InputsOf(direct, "g"), (Inputs{"^g/return_0", "^g/return_1"}));

  builder.Node("same", "Identity", {"x", "^g"}, {{"T", kInt}}).Node("join", "NoOp", {"^same", "^g"});
  builder.Node("assert", "Assert", {"true", "x", "^join"}, assert_attrs);
  const GraphDef joined = Expand(builder.graph(), {"assert"});
  EXPECT_TRUE(HasInput(joined, "join", "^g"));
  EXPECT_TRUE(HasInput(joined, "same", "^g"));
  EXPECT_TRUE(HasInput(joined, "assert", "^join"));

  builder.Const("value", 1, {"^g"}).Node("reader", "Assert", {"true", "value"}, assert_attrs);
  EXPECT_EQ(InputsOf(Expand(builder.graph(), {"reader"}), "value"), Inputs{"^g"}) << "it waits for the reader";
}

TEST(SideEffectsTest, CallsWithSideEffectsWaitForGradientCalls) {
  GraphBuilder builder = Differentiated();
  builder.Call("effect", "E", {"x", "^g"});
  builder.Function(FunctionDefHelper::Create(
      "E", {"n: int32"}, {"r: int32"}, {},
      {BodyTrue("true"),
       MakeBodyNode("assert", "Assert", {"true:output:0", "n"}, {{"T", tensorflow::DataTypeSlice(kInts)}})},
      {{"r", "n"}}));
  EXPECT_EQ(InputsOf(Expand(builder.graph(), {"effect"}), "effect/call_0"), (Inputs{"x", "^g"}));
}

TEST(SideEffectsTest, SideEffectsInBodiesWaitForGradientCalls) {
  const Attrs gradient = GraphBuilder::CallAttrs("F__backward1", {DT_VARIANT, kInt}, {kInt, kInt});
  GraphBuilder builder = Differentiated();
  builder.Call("e", "E", {"x"});
  builder.Function(FunctionDefHelper::Create(
      "E", {"n: int32"}, {"r: int32"}, {},
      {MakeBodyNode("y", kInvokeOp, {"n"}, ForwardAttrs()), MakeBodyNode("g", kInvokeOp, {"y:record:0", "n"}, gradient),
       BodyTrue("true"),
       MakeBodyNode("assert", "Assert", {"true:output:0", "n", "^g"}, {{"T", tensorflow::DataTypeSlice(kInts)}}),
       MakeBodyNode("same", "Identity", {"n", "^g"}, {{"T", kInt}})},
      {{"r", "same:output:0"}}));
  const GraphDef expanded = Expand(builder.graph(), {"e:0"});
  EXPECT_EQ(InputsOf(expanded, "E/same"), Inputs{"E/n"});
  EXPECT_TRUE(HasInput(expanded, "E/assert", "^E/g"));
}

TEST(SideEffectsTest, WaitsOfGradientCallsStay) {
  GraphBuilder builder = Differentiated();
  GraphDef graph = builder.Const("first").graph();
  graph.mutable_node(3)->add_input("^first");
  ASSERT_EQ(graph.node(3).name(), "g");
  EXPECT_EQ(InputsOf(Expand(graph, {"g:0"}), "g/call_0"), (Inputs{"y/return_1", "^first"}));
}

TEST(SideEffectsTest, WaitsForForwardCallsStay) {
  GraphBuilder builder = Differentiated();
  builder.Node("z", "Identity", {"g:0", "^y"}, {{"T", kInt}});
  const GraphDef expanded = Expand(builder.graph(), {"z:0"});
  EXPECT_EQ(InputsOf(expanded, "z"), (Inputs{"g/return_0", "^y"}));
  EXPECT_EQ(InputsOf(expanded, "y"), (Inputs{"^y/return_0", "^y/return_1"}));
}

}  // namespace
}  // namespace tensorflow_recursion
