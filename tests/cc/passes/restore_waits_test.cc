// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/restore_waits.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "cc/analysis/regions.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {
namespace {

using Strings = std::set<std::string>;

// What a node of the graph waits for by control edges, once waits are restored.
Strings WaitsOf(const std::string& name, const StaticGraph& of) {
  std::unique_ptr<tensorflow::Graph> graph;
  const absl::Status constructed = Construct(of.graph(), &graph);
  EXPECT_TRUE(constructed.ok()) << constructed;
  GraphRegions regions;
  const absl::Status built = regions.Build(*graph);
  EXPECT_TRUE(built.ok()) << built;
  RestoreWaits(regions, graph.get());
  Strings waits;
  for (const tensorflow::Edge* edge : FindNode(*graph, name)->in_edges()) {
    if (edge->IsControlEdge() && edge->src()->IsOp()) waits.insert(edge->src()->name());
  }
  return waits;
}

// F(x): an effect, a branch behind it, and an effect on one side of that. `done` waits for the last one alone.
StaticGraph EffectBeforeBranch() {
  StaticGraph graph;
  graph.Arg("a").Call("main", "F", 1, {"a"}).Retval("main/return_0").Function("F", {"x"});
  graph.Const("F/true", true, {"^F/frame_start"}).Kernel("F/first", {"F/x"}, 1, /*is_stateful=*/true);
  graph.Op("F/branch", "Switch", {"F/first", "F/true"});
  graph.Kernel("F/pure", {"F/branch:1"}).Kernel("F/second", {"F/pure"}, 1, /*is_stateful=*/true);
  graph.Node("F/done", "ControlTrigger", {"^F/second"}).Const("F/value", 1, {"^F/done"});
  graph.Result("F", "F/value");
  return graph;
}

TEST(RestoreWaitsTest, ControlTriggersWaitForEffectsBehindBranchesAndBeforeThem) {
  EXPECT_EQ(WaitsOf("F/done", EffectBeforeBranch()), (Strings{"F/first", "F/second"}));
}

TEST(RestoreWaitsTest, WhatIsNoControlTriggerWaitsAsBefore) {
  EXPECT_EQ(WaitsOf("F/value", EffectBeforeBranch()), Strings{"F/done"});
}

TEST(RestoreWaitsTest, ControlTriggersWaitForEffectsThatArgumentsOfCallsComeFrom) {
  StaticGraph graph;
  graph.Arg("a").Call("main", "F", 1, {"a"}).Retval("main/return_0").Function("F", {"x"});
  graph.Kernel("F/argument", {"F/x"}, 1, /*is_stateful=*/true).Call("F/call", "G", 2, {"F/x", "F/argument"});
  graph.Kernel("F/last", {"F/call/return_0"}, 1, /*is_stateful=*/true);
  graph.Node("F/done", "ControlTrigger", {"^F/last"}).Const("F/value", 1, {"^F/done"}).Result("F", "F/value");
  graph.Function("G", {"y", "z"}).Op("G/neg", "Neg", {"G/y"}).Result("G", "G/neg");
  EXPECT_EQ(WaitsOf("F/done", graph), (Strings{"F/argument", "F/call/return_0", "F/last"}));
}

// A loop whose body has an effect, a trigger that its next iteration waits for, and one that waits for the loop.
StaticGraph EffectsAroundLoop() {
  StaticGraph graph;
  graph.Arg("a").Call("main", "F", 1, {"a"}).Retval("main/return_0").Function("F", {"x"});
  graph.Kernel("F/before", {"F/x"}, 1, /*is_stateful=*/true).Enter("F/enter", "F/before", "F/loop");
  graph.Node("F/merge", "Merge", {"F/enter", "F/next"}, {{"T", kInt}, {"N", 2}}).Const("F/more", true, {"^F/merge"});
  graph.Node("F/condition", "LoopCond", {"F/more"}).Op("F/switch", "Switch", {"F/merge", "F/condition"});
  graph.Kernel("F/inside", {"F/switch:1"}, 1, /*is_stateful=*/true).Kernel("F/last", {"F/inside"}, 1, true);
  graph.Node("F/join", "ControlTrigger", {"^F/last"}).Op("F/next", "NextIteration", {"F/last", "^F/join"});
  graph.Op("F/exit", "Exit", {"F/switch:0"}).Kernel("F/after", {"F/exit"}, 1, /*is_stateful=*/true);
  graph.Node("F/done", "ControlTrigger", {"^F/after"}).Const("F/value", 1, {"^F/done"}).Result("F", "F/value");
  return graph;
}

TEST(RestoreWaitsTest, ControlTriggersInLoopsWaitForEffectsOfTheIteration) {
  EXPECT_EQ(WaitsOf("F/join", EffectsAroundLoop()), (Strings{"F/inside", "F/last"}));
}

TEST(RestoreWaitsTest, ControlTriggersBehindLoopsWaitForWhatIsBeforeThemAndForTheirEnd) {
  EXPECT_EQ(WaitsOf("F/done", EffectsAroundLoop()), (Strings{"F/after", "F/before", "F/exit"}));
}

}  // namespace
}  // namespace tensorflow_recursion
