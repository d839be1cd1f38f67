// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/superfluous_waits.h"

#include <gtest/gtest.h>

#include "tests/cc/analysis/flow.h"

namespace tensorflow_recursion {
namespace {

// x on both sides of a branch on p, and the true side's pivot.
StaticGraph Conditional() {
  StaticGraph graph;
  graph.Arg("p", 0, tensorflow::DT_BOOL).Arg("x", 1);
  graph.Op("switch", "Switch", {"x", "p"});
  graph.Op("pred", "Switch", {"p", "p"}, tensorflow::DT_BOOL);
  graph.Op("pivot", "Identity", {"pred:1"}, tensorflow::DT_BOOL);
  return graph;
}

size_t NumControls(const StaticGraph& graph, const std::string& kernel) {
  BuiltFlow built(graph);
  EXPECT_TRUE(built.status.ok()) << built.status;
  const absl::Status status = DropSuperfluousWaits(&built.flow);
  EXPECT_TRUE(status.ok()) << status;
  return built[built.Kernel(kernel)].controls.size();
}

TEST(SuperfluousWaitsTest, APivotSaysNothingThatAValueOfItsSideDoesNot) {
  StaticGraph graph = Conditional();
  graph.Kernel("k", {"switch:1", "^pivot"}).Retval("k");
  EXPECT_EQ(NumControls(graph, "k"), 0);
}

TEST(SuperfluousWaitsTest, ThePivotOfTheOtherSideStays) {
  StaticGraph graph = Conditional();
  graph.Kernel("k", {"switch", "^pivot"}).Retval("k");
  EXPECT_EQ(NumControls(graph, "k"), 1);
}

TEST(SuperfluousWaitsTest, APivotStaysWhereNothingElseTellsTheSide) {
  StaticGraph graph = Conditional();
  graph.Kernel("k", {"x", "^pivot"}).Retval("k");
  EXPECT_EQ(NumControls(graph, "k"), 1);
}

TEST(SuperfluousWaitsTest, WaitingForASideEffectStays) {
  StaticGraph graph;
  graph.Arg("x").Kernel("pure", {"x"}).Kernel("effect", {"x"}, 1, /*is_stateful=*/true);
  graph.Kernel("k", {"x", "^pure"}).Kernel("l", {"x", "^effect"}).Retval("k").Retval("l", 1);
  EXPECT_EQ(NumControls(graph, "k"), 0);
  EXPECT_EQ(NumControls(graph, "l"), 1);
}

TEST(SuperfluousWaitsTest, WaitsStayWhereAKernelChangesItsInput) {
  StaticGraph graph;
  graph.Arg("x").Arg("i", 1).Kernel("before", {"x"});
  graph.Node("change", "InplaceAdd", {"x", "i", "x", "^before"}, {{"T", kInt}}).Kernel("after", {"x", "^change"});
  graph.Retval("before").Retval("after", 1);
  EXPECT_EQ(NumControls(graph, "change"), 1);
  EXPECT_EQ(NumControls(graph, "after"), 1);
}

TEST(SuperfluousWaitsTest, GuardsOfConstantsThatStayBecomeControls) {
  StaticGraph graph = Conditional();
  graph.Const("one", 1, {"^pivot"}).Kernel("k", {"x", "one"}).Kernel("l", {"switch:1", "one"});
  graph.Retval("k").Retval("l", 1);
  EXPECT_EQ(NumControls(graph, "k"), 1);
  EXPECT_EQ(NumControls(graph, "l"), 0);
}

TEST(SuperfluousWaitsTest, TakesOutWhatOnlyHandsAValueOn) {
  StaticGraph graph;
  graph.Arg("x").Kernel("pure", {"x"}).Op("same", "Identity", {"x", "^pure"}).Kernel("k", {"same"}).Retval("k");
  BuiltFlow built(graph);
  ASSERT_TRUE(DropSuperfluousWaits(&built.flow).ok());
  EXPECT_TRUE(built[built.Find("same", OpKind::kPass)].is_removed);
  EXPECT_EQ(built[built.Kernel("k")].inputs[0].source.node, built.Find("x", OpKind::kArgument));
}

TEST(SuperfluousWaitsTest, AConstantArgumentStaysWithTheCallerUnlessTheOthersMayBeLate) {
  for (const bool is_late : {false, true}) {
    StaticGraph graph;
    graph.Arg("x").Kernel("k", {"x"}, 1, is_late).Const("one", 1).Call("main", "F", 1, {"k", "one"});
    graph.Retval("main/return_0");
    graph.Function("F", {"a", "b"}).Kernel("F/k", {"F/a", "F/b"}).Result("F", "F/k");
    BuiltFlow built(graph);
    ASSERT_TRUE(DropSuperfluousWaits(&built.flow).ok());
    EXPECT_EQ(built[built.flow.call_sites[0].node].inputs[1].is_constant(), !is_late);
  }
}

}  // namespace
}  // namespace tensorflow_recursion
