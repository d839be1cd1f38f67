// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/make_composite.h"

#include <gtest/gtest.h>

#include "cc/base/names.h"
#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Graph;
using tensorflow::Node;

// A part of a function: r = F(F(x)), with the calls as the test wants them.
class MakeCompositeTest : public ::testing::Test {
 protected:
  MakeCompositeTest() {
    builder_.Node("x", "_Arg", {}, {{"T", kInt}, {"index", 4}}).Call("y", "F", {"x"}).Call("z", "F", {"y"});
    builder_.Node("r", "_Retval", {"z"}, {{"T", kInt}, {"index", 2}}).Function(Endless("F", "F"));
  }

  static void MakeStatic(Node* call) { call->AddAttr(kStaticAttr, true); }

  static bool Holds(const GraphBuilder& builder, void (*change)(Node* first, Node* second)) {
    const std::unique_ptr<Graph> graph = MakeGraph(builder);
    change(FindNode(*graph, "y"), FindNode(*graph, "z"));
    return HoldsCallsToMakeStatic(*graph, graph->flib_def());
  }

  static void MakeBothStatic(Node* first, Node* second) {
    MakeStatic(first);
    MakeStatic(second);
  }

  // Adds an operator that runs a function, which runs another one with a node of `op`.
  void AddRunner(const std::string& op) {
    const Attrs runs_g = GraphBuilder::CallAttrs("G", {kInt}, {kInt});
    const Attrs runs_h = GraphBuilder::CallAttrs("H", {kInt}, {kInt});
    builder_.Node("runner", "StatefulPartitionedCall", {"x"}, runs_g);
    builder_.Function(OneNode("G", "PartitionedCall", runs_h)).Function(OneNode("H", op, {{"T", kInt}}));
  }

  static tensorflow::FunctionDef OneNode(const std::string& name, const std::string& op, const Attrs& attrs) {
    return tensorflow::FunctionDefHelper::Create(name, {"n: int32"}, {"r: int32"}, {},
                                                 {MakeBodyNode("node", op, {"n"}, attrs)}, {{"r", "node:output:0"}});
  }

  GraphBuilder builder_;
};

TEST_F(MakeCompositeTest, CallsThatSaySoAreMadeStaticAsAWhole) {
  EXPECT_TRUE(Holds(builder_, MakeBothStatic));
  EXPECT_FALSE(Holds(builder_, [](Node*, Node*) {}));
  EXPECT_FALSE(Holds(builder_, [](Node* first, Node*) { MakeStatic(first); }));
}

TEST_F(MakeCompositeTest, CallsOfDifferentSettingsAreNoWhole) {
  const auto set_both = [](Node* first, Node* second, int first_depth, int second_depth) {
    MakeStatic(first);
    MakeStatic(second);
    first->AddAttr("_recursion_max_depth", first_depth);
    second->AddAttr("_recursion_max_depth", second_depth);
  };
  const std::unique_ptr<Graph> graph = MakeGraph(builder_);
  set_both(FindNode(*graph, "y"), FindNode(*graph, "z"), 10, 10);
  EXPECT_TRUE(HoldsCallsToMakeStatic(*graph, graph->flib_def()));
  const std::unique_ptr<Graph> other = MakeGraph(builder_);
  set_both(FindNode(*other, "y"), FindNode(*other, "z"), 10, 20);
  EXPECT_FALSE(HoldsCallsToMakeStatic(*other, other->flib_def()));
}

TEST_F(MakeCompositeTest, WhatWaitsForOtherDevicesIsNoWhole) {
  builder_.Node("received", "_Recv", {},
                {{"tensor_type", kInt},
                 {"tensor_name", "t"},
                 {"send_device", kDeviceA},
                 {"send_device_incarnation", 1},
                 {"recv_device", kDeviceB}});
  EXPECT_FALSE(Holds(builder_, MakeBothStatic));
}

TEST_F(MakeCompositeTest, FunctionThatOnlyMightTalkToOtherDevicesIsPartOfTheWhole) {
  AddRunner("Identity");
  EXPECT_TRUE(Holds(builder_, MakeBothStatic));
}

TEST_F(MakeCompositeTest, FunctionThatWaitsForOtherDevicesIsNot) {
  AddRunner("CollectiveGather");
  EXPECT_FALSE(Holds(builder_, MakeBothStatic));
}

TEST_F(MakeCompositeTest, FunctionThatIsMissingIsNot) {
  builder_.Node("runner", "StatefulPartitionedCall", {"x"}, GraphBuilder::CallAttrs("G", {kInt}, {kInt}));
  EXPECT_FALSE(Holds(builder_, MakeBothStatic));
}

TEST_F(MakeCompositeTest, CompositeSaysWhatItHolds) {
  std::unique_ptr<Graph> graph = MakeGraph(builder_);
  ASSERT_TRUE(MakeComposite(kDeviceA, "run", /*is_of_function=*/true, graph->flib_def(), &graph).ok());
  const Node* const run = FindNode(*graph, "run");
  ASSERT_NE(run, nullptr);
  ASSERT_NE(run->attrs().Find(kHoldsCallsAttr), nullptr);
  EXPECT_TRUE(run->attrs().Find(kHoldsCallsAttr)->b());
  ASSERT_NE(run->attrs().Find(kIsOfFunctionAttr), nullptr);
  EXPECT_TRUE(run->attrs().Find(kIsOfFunctionAttr)->b());
  EXPECT_EQ(graph->num_op_nodes(), 3);
  tensorflow::GraphDef def;
  graph->ToGraphDef(&def, /*include_flib_def=*/false);
  const tensorflow::FunctionLibraryDefinition library(tensorflow::OpRegistry::Global(), builder_.graph().library());
  EXPECT_TRUE(library.ReachableDefinitions(def).Contains("F"));
}

}  // namespace
}  // namespace tensorflow_recursion
