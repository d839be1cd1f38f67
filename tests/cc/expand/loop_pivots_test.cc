// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/loop_pivots.h"

#include <gtest/gtest.h>

#include "tests/cc/expand/expansion.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::GraphDef;

// Two loops, one in the other, whose bodies read x from outside.
NodeList Loops() {
  GraphBuilder builder;
  builder.Const("x");
  AddLoop(&builder, "outer", "x");
  AddLoop(&builder, "inner", "outer/next");
  for (const std::string loop : {"outer", "inner"}) {
    builder.Node(loop + "/x", "Enter", {"x"}, {{"T", kInt}, {"frame_name", loop + "_frame"}, {"is_constant", true}});
    builder.Node(loop + "/same", "Identity", {loop + "/x"}, {{"T", kInt}});
    builder.Node(loop + "/branch", "Switch", {loop + "/same", loop + "/cond"}, {{"T", kInt}});
    builder.Node(loop + "/case", "_SwitchN", {loop + "/same", loop + "/next"}, {{"T", kInt}, {"num_outs", 3}});
    builder.Node(loop + "/neg", "Neg", {loop + "/x"}, {{"T", kInt}});
  }
  builder.Node("inner/iterate", "NextIteration", {"inner/next"}, {{"T", kInt}});
  builder.Node("outer/iterate", "NextIteration", {"inner/exit"}, {{"T", kInt}});
  NodeList list;
  for (const auto& node : builder.graph().node()) list.Add(node, /*with_effect=*/false);
  return list;
}

TEST(LoopPivotsTest, WhatComesFromOutsideIsFoundThroughBranches) {
  const NodeList list = Loops();
  EXPECT_TRUE(ComesFromOutside(list, "inner/x"));
  EXPECT_TRUE(ComesFromOutside(list, "inner/branch:1"));
  EXPECT_TRUE(ComesFromOutside(list, "inner/case:2"));
  EXPECT_FALSE(ComesFromOutside(list, "inner/neg")) << "an operator of the loop makes it";
  EXPECT_FALSE(ComesFromOutside(list, "inner/next")) << "it is a variable of the loop";
  EXPECT_FALSE(ComesFromOutside(list, "x"));
}

std::string ConditionOf(const NodeList& list, const std::string& node) {
  return FindLoopCondition(list, list.nodes[list.index.at(node)]);
}

TEST(LoopPivotsTest, TheConditionIsThatOfTheInnermostLoopAround) {
  const NodeList list = Loops();
  EXPECT_EQ(ConditionOf(list, "inner/iterate"), "");
  EXPECT_EQ(ConditionOf(list, "inner/next"), "inner/cond");
  EXPECT_EQ(ConditionOf(list, "outer/next"), "outer/cond");
  EXPECT_EQ(ConditionOf(list, "inner/exit"), "outer/cond") << "what it delivers is outside of the inner loop";
  EXPECT_EQ(ConditionOf(list, "inner/less"), "") << "it comes before the condition";
  EXPECT_EQ(ConditionOf(list, "x"), "");
}

TEST(LoopPivotsTest, CallsOfALoopShareThePivotOfTheirDevice) {
  NameTable names;
  GraphDef graph;
  NodeWriter writer(&names, &graph);
  LoopPivots pivots(&writer);
  EXPECT_EQ(pivots.Get("cond", kDeviceA), "cond/call_pivot");
  EXPECT_EQ(pivots.Get("cond", kDeviceA), "cond/call_pivot");
  EXPECT_EQ(pivots.Get("cond", kDeviceB), "cond/call_pivot_1");
  EXPECT_EQ(graph.node_size(), 4) << "a Switch and an Identity for each device";
  EXPECT_EQ(InputsOf(graph, "cond/call_pivot_1"), Inputs{"cond/call_switch_1:1"});
}

}  // namespace
}  // namespace tensorflow_recursion
