// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/keep_invariants.h"

#include <gtest/gtest.h>

#include "cc/analysis/superfluous_waits.h"
#include "tests/cc/analysis/flow.h"
#include "tests/cc/analysis/invariant_graphs.h"

namespace tensorflow_recursion {
namespace {

void Keep(BuiltFlow* built) {
  ASSERT_TRUE(built->status.ok()) << built->status;
  ASSERT_TRUE(DropSuperfluousWaits(&built->flow).ok());
  const absl::Status status = KeepInvariants({}, &built->flow);
  ASSERT_TRUE(status.ok()) << status;
}

const FlowCallSite& SiteOf(const BuiltFlow& built, int64_t call_id) {
  for (const FlowCallSite& site : built.flow.call_sites) {
    if (site.call_id == call_id) return site;
  }
  ADD_FAILURE() << "no call " << call_id;
  return built.flow.call_sites[0];
}

TEST(KeepInvariantsTest, CallsInsidePassThemNoMore) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  AddWeighted(&graph, "F", "F", 2);
  BuiltFlow built(graph);
  Keep(&built);
  EXPECT_FALSE(SiteOf(built, 1).is_inside);
  EXPECT_TRUE(SiteOf(built, 2).is_inside);
  EXPECT_EQ(built[SiteOf(built, 1).node].inputs.size(), 2);
  EXPECT_EQ(built[SiteOf(built, 2).node].inputs.size(), 1);
  const FlowFunction& f = built.flow.functions.at(built.flow.regions.FindFunction("F"));
  EXPECT_EQ(f.num_invariants, 1);
  EXPECT_EQ(f.entries[1], kNone);
}

TEST(KeepInvariantsTest, OperatorsWaitForTheirOtherInputsAlone) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  AddWeighted(&graph, "F", "F", 2);
  BuiltFlow built(graph);
  Keep(&built);
  const FlowNode& sum = built[built.Find("F/sum", OpKind::kScalar)];
  EXPECT_EQ(sum.inputs[1].invariant, 0);
  EXPECT_TRUE(sum.controls.empty());
  // Nothing else tells it which side of the branch was taken.
  const FlowNode& base = built[built.Kernel("F/base")];
  EXPECT_TRUE(base.inputs[0].is_invariant());
  ASSERT_EQ(base.controls.size(), 1);
  EXPECT_EQ(built[base.controls[0].node].kind, OpKind::kBranch);
  EXPECT_EQ(base.controls[0].port, 1);
  EXPECT_TRUE(built[built.Find("F/sw", OpKind::kSwitch)].is_removed);
  EXPECT_TRUE(built[built.Find("F/w", OpKind::kEntry)].is_removed);
}

TEST(KeepInvariantsTest, BecomeTheLastArguments) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  AddWeighted(&graph, "F", "F", 2, {"w", "n"}, {"sw", "n1"});
  BuiltFlow built(graph);
  Keep(&built);
  const FlowCallSite& outer = SiteOf(built, 1);
  EXPECT_EQ(built[outer.node].inputs[0].source.node, built.Find("x1", OpKind::kArgument));
  EXPECT_EQ(built[outer.node].inputs[1].source.node, built.Find("x0", OpKind::kArgument));
  EXPECT_EQ(outer.calls.at(0)->name(), "main/call_1");
  const NodeId n = built.Find("F/n", OpKind::kEntry);
  EXPECT_EQ(built.flow.functions.at(built[n].region).entries[0], n);
  EXPECT_EQ(built[n].index, 0);
}

TEST(KeepInvariantsTest, WhatTakesOnlyTokensStillGetsThem) {
  StaticGraph graph;
  AddMain(&graph, "F", 2, 2);
  graph.Function("F", {"n", "w"}).Kernel("F/n1", {"F/n"}).Call("F/call", "F", 2, {"F/n1", "F/w"});
  graph.Call("F/other", "G", 3, {"F/w"}).Kernel("F/k", {"F/call/return_0", "F/other/return_0"});
  graph.Result("F", "F/k").Result("F", "F/w", 1);
  graph.Function("G", {"a"}).Kernel("G/k", {"G/a"}).Result("G", "G/k");
  BuiltFlow built(graph);
  Keep(&built);
  const NodeId w = built.Find("F/w", OpKind::kEntry);
  EXPECT_FALSE(built[w].is_removed);
  EXPECT_EQ(built[SiteOf(built, 3).node].inputs[0].source.node, w);
  EXPECT_FALSE(SiteOf(built, 3).is_inside);
  EXPECT_EQ(built.flow.functions.at(built[w].region).entries[1], w);
}

// for i in range(2): s = F(n, w) + w
TEST(KeepInvariantsTest, AreReadInLoopsToo) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"n", "w"}).Kernel("F/n1", {"F/n"});
  graph.Enter("F/enter_s", "F/n1", "F/loop").Enter("F/enter_w", "F/w", "F/loop", true);
  Merge(&graph, "F/s", {"F/enter_s", "F/next"});
  graph.Op("F/less", "Less", {"F/s", "F/enter_w"}).Node("F/cond", "LoopCond", {"F/less"});
  graph.Op("F/switch", "Switch", {"F/s", "F/cond"}).Op("F/body", "Identity", {"F/switch:1"});
  graph.Call("F/call", "F", 2, {"F/body", "F/enter_w", "^F/body"});
  graph.Op("F/sum", "AddV2", {"F/call/return_0", "F/enter_w"}).Op("F/next", "NextIteration", {"F/sum"});
  graph.Op("F/exit", "Exit", {"F/switch"}).Result("F", "F/exit");
  BuiltFlow built(graph);
  Keep(&built);
  EXPECT_EQ(built[SiteOf(built, 2).node].inputs.size(), 1);
  EXPECT_TRUE(built[built.Find("F/sum", OpKind::kScalar)].inputs[1].is_invariant());
  EXPECT_TRUE(built[built.Find("F/less", OpKind::kScalar)].inputs[1].is_invariant());
  EXPECT_TRUE(built[built.Find("F/enter_w", OpKind::kEntry)].is_removed);
}

}  // namespace
}  // namespace tensorflow_recursion
