// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/flow_graph.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/cc/analysis/flow.h"

namespace tensorflow_recursion {
namespace {

TEST(FlowGraphTest, ReadersOfARenamedValueReadItsSource) {
  StaticGraph graph;
  graph.Arg("x").Op("a", "Identity", {"x"}).Op("b", "Identity", {"a"}).Kernel("k", {"b"}).Retval("k");
  const BuiltFlow built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  const Input& input = built[built.Kernel("k")].inputs[0];
  EXPECT_FALSE(input.is_constant());
  EXPECT_EQ(input.source, (Source{built.Find("x", OpKind::kArgument), 0}));
}

TEST(FlowGraphTest, ConstantsAreReadAsValuesGuardedByTheirControls) {
  StaticGraph graph;
  graph.Arg("x").Kernel("before", {"x"}).Const("one", 1, {"^before"}).Kernel("k", {"x", "one"}).Retval("k");
  const BuiltFlow built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  const Input& input = built[built.Kernel("k")].inputs[1];
  ASSERT_TRUE(input.is_constant());
  EXPECT_EQ(built.flow.constants[input.constant].tensor.scalar<int32_t>()(), 1);
  ASSERT_EQ(input.guards.size(), 1);
  EXPECT_EQ(input.guards[0], (Source{built.Kernel("before"), Source::kWholeNode}));
}

TEST(FlowGraphTest, MergesGetConstantsAsTokens) {
  StaticGraph graph;
  graph.Arg("x").Const("one", 1);
  Merge(&graph, "m", {"x", "one"});
  graph.Retval("m");
  const BuiltFlow built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  const Input& input = built[built.Find("m", OpKind::kMerge)].inputs[1];
  ASSERT_FALSE(input.is_constant());
  EXPECT_EQ(built[input.source.node].kind, OpKind::kPass);
}

TEST(FlowGraphTest, SwitchesOnOnePredicateShareItsBranch) {
  StaticGraph graph;
  graph.Arg("p", 0, tensorflow::DT_BOOL).Arg("x", 1).Arg("y", 2);
  graph.Op("s", "Switch", {"x", "p"}).Op("t", "Switch", {"y", "p"}).Retval("s").Retval("t", 1);
  const BuiltFlow built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  const NodeId branch = built[built.Find("s", OpKind::kSwitch)].branch;
  ASSERT_NE(branch, kNone);
  EXPECT_EQ(built[branch].kind, OpKind::kBranch);
  EXPECT_EQ(built[built.Find("t", OpKind::kSwitch)].branch, branch);
}

TEST(FlowGraphTest, OneCallSiteStandsForAllNodesOfACall) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"a", "b"}).Kernel("F/k", {"F/a", "F/b"}).Result("F", "F/k");
  const BuiltFlow built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  ASSERT_EQ(built.flow.call_sites.size(), 1);
  const FlowCallSite& site = built.flow.call_sites[0];
  EXPECT_EQ(site.callee, "F");
  EXPECT_EQ(site.name, "main");
  EXPECT_EQ(built[site.node].inputs.size(), 2);
  const FlowFunction& function = built.flow.functions.at(built.flow.regions.FindFunction("F"));
  EXPECT_EQ(function.entries.size(), 2);
  EXPECT_EQ(function.num_results(), 1);
  EXPECT_EQ(built[function.frame_start].kind, OpKind::kFrameStart);
}

TEST(FlowGraphTest, LoopsKnowTheirVariables) {
  StaticGraph loop;
  loop.Arg("n");
  AddFib(&loop, 2);
  AddSumOfFibs(&loop, "", "n", {}, 1).Retval("exit");
  const BuiltFlow built(loop);
  ASSERT_TRUE(built.status.ok()) << built.status;
  ASSERT_EQ(built.flow.loops.size(), 1);
  const FlowLoop& found = built.flow.loops[0];
  EXPECT_EQ(found.enters.size(), 3);
  EXPECT_EQ(found.nexts.size(), 2);
  EXPECT_EQ(found.exits.size(), 1);
  EXPECT_EQ(built[found.start].inputs.size(), 3);
  EXPECT_EQ(built[found.next].inputs.size(), 2);
  EXPECT_FALSE(found.is_partial);
  EXPECT_EQ(built.flow.FindLoop(found.region), &found);
  EXPECT_EQ(built.flow.FindLoop(GraphRegions::kRoot), nullptr);
}

TEST(FlowGraphTest, SortsNodesBehindTheirSources) {
  StaticGraph graph;
  graph.Arg("x").Kernel("k", {"x"}).Kernel("l", {"k", "x"}).Retval("l");
  const BuiltFlow built(graph);
  const std::vector<NodeId> order = built.Order();
  ASSERT_EQ(order.size(), built.flow.nodes.size());
  std::vector<bool> seen(order.size(), false);
  for (NodeId id : order) {
    ForEachSource(built[id], [&](const Source& source) { EXPECT_TRUE(seen[source.node]); });
    seen[id] = true;
  }
}

}  // namespace
}  // namespace tensorflow_recursion
