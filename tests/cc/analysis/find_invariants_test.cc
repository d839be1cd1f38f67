// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/find_invariants.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cc/analysis/superfluous_waits.h"
#include "tests/cc/analysis/flow.h"
#include "tests/cc/analysis/invariant_graphs.h"

namespace tensorflow_recursion {
namespace {

// "F1" for argument 1 of F, by name; those of one invariant with a + between them.
std::vector<std::string> Find(const StaticGraph& graph, const std::vector<std::string>& compiled = {}) {
  BuiltFlow built(graph);
  EXPECT_TRUE(built.status.ok()) << built.status;
  EXPECT_TRUE(DropSuperfluousWaits(&built.flow).ok());
  std::set<RegionId> regions;
  for (const std::string& name : compiled) regions.insert(built.flow.regions.FindFunction(name));
  std::vector<std::string> found;
  const std::vector<NodeId> order = built.Order();
  for (const InvariantRecursion& recursion : FindInvariants(built.flow, order, regions)) {
    for (const auto& invariant : recursion.invariants) {
      std::string& text = found.emplace_back();
      for (const auto& [function, argument] : invariant) {
        absl::StrAppend(&text, text.empty() ? "" : "+", built.flow.regions.regions()[function].name, argument);
      }
    }
  }
  return found;
}

using Names = std::vector<std::string>;

TEST(InvariantsOfRecursionsTest, AreArgumentsThatEveryCallInsidePassesOn) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  AddWeighted(&graph, "F", "F", 2);
  EXPECT_EQ(Find(graph), Names{"F1"});
}

TEST(InvariantsOfRecursionsTest, CompiledFunctionsHaveNone) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  AddWeighted(&graph, "F", "F", 2);
  EXPECT_EQ(Find(graph, {"F"}), Names{});
}

TEST(InvariantsOfRecursionsTest, FunctionsOutsideOfRecursionsHaveNone) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"a", "b"}).Call("F/call", "G", 2, {"F/a", "F/b"}).Result("F", "F/call/return_0");
  graph.Function("G", {"a", "b"}).Kernel("G/k", {"G/a", "G/b"}).Result("G", "G/k");
  EXPECT_EQ(Find(graph), Names{});
}

TEST(InvariantsOfRecursionsTest, MayHaveAnotherPlaceInEveryFunction) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  AddWeighted(&graph, "F", "G", 2, {"n", "w"}, {"sw", "n1"});
  AddWeighted(&graph, "G", "F", 3, {"w", "n"}, {"n1", "sw"});
  EXPECT_EQ(Find(graph), Names{"F1+G0"});
}

TEST(InvariantsOfRecursionsTest, OneCallThatPassesSomethingElseIsEnough) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  AddWeighted(&graph, "F", "G", 2);
  AddWeighted(&graph, "G", "F", 3, {"n", "w"}, {"n1", "n1"});
  EXPECT_EQ(Find(graph), Names{});
}

// The first frame has them in one order, the second in the other.
TEST(InvariantsOfRecursionsTest, ArgumentsThatSwapPlacesChange) {
  StaticGraph graph;
  AddMain(&graph, "F", 3);
  graph.Function("F", {"n", "a", "b"}).Kernel("F/n1", {"F/n"}).Call("F/call", "F", 2, {"F/n1", "F/b", "F/a"});
  graph.Result("F", "F/call/return_0");
  EXPECT_EQ(Find(graph), Names{});
}

TEST(InvariantsOfRecursionsTest, AnArgumentThatMayBeDeadInALiveFrameIsNone) {
  for (const bool inside : {false, true}) {
    StaticGraph graph;
    graph.Arg("x").Arg("p", 1, tensorflow::DT_BOOL).Op("switch", "Switch", {"x", "p"});
    graph.Call("main", "F", 1, {"x", inside ? "x" : "switch"}).Retval("main/return_0");
    graph.Function("F", {"n", "w"}).Kernel("F/n1", {"F/n"}).Const("F/one", 1, {"^F/frame_start"});
    graph.Op("F/less", "Less", {"F/n", "F/one"}).Op("F/switch", "Switch", {"F/w", "F/less"});
    graph.Call("F/call", "F", 2, {"F/n1", inside ? "F/switch" : "F/w"}).Result("F", "F/call/return_0");
    EXPECT_EQ(Find(graph), Names{});
  }
}

TEST(InvariantsOfRecursionsTest, AnArgumentThatWaitsForASideEffectIsNone) {
  StaticGraph graph;
  graph.Arg("x").Kernel("late", {"x"}, 1, /*is_stateful=*/true).Call("main", "F", 1, {"x", "late"});
  graph.Retval("main/return_0");
  AddWeighted(&graph, "F", "F", 2);
  EXPECT_EQ(Find(graph), Names{});
}

TEST(InvariantsOfRecursionsTest, AnArgumentThatIsPassedOnAfterASideEffectIsNone) {
  for (const bool is_effect : {false, true}) {
    StaticGraph graph;
    AddMain(&graph, "F", 2);
    graph.Function("F", {"n", "w"}).Kernel("F/n1", {"F/n"}).Kernel("F/k", {"F/n"}, 1, is_effect);
    graph.Op("F/after", "Identity", {"F/w", "^F/k"}).Call("F/call", "F", 2, {"F/n1", "F/after"});
    graph.Result("F", "F/call/return_0");
    EXPECT_EQ(Find(graph), is_effect ? Names{} : Names{"F1"});
  }
}

TEST(InvariantsOfRecursionsTest, ACallInsideKeepsAnArgumentThatOpensIt) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"a", "b"}).Kernel("F/k", {"F/a", "F/b"}).Call("F/call", "F", 2, {"F/a", "F/b"});
  graph.Op("F/sum", "AddV2", {"F/k", "F/call/return_0"}).Result("F", "F/sum");
  EXPECT_EQ(Find(graph), Names{"F1"});
}

// n may be dead in a live frame, and then only w opens the call.
TEST(InvariantsOfRecursionsTest, AnArgumentThatMayOpenACallAloneIsNone) {
  StaticGraph graph;
  graph.Arg("x").Arg("p", 1, tensorflow::DT_BOOL).Op("switch", "Switch", {"x", "p"});
  graph.Call("main", "F", 1, {"switch", "x"}).Retval("main/return_0");
  graph.Function("F", {"n", "w"}).Kernel("F/n1", {"F/n"}).Call("F/call", "F", 2, {"F/n1", "F/w"});
  graph.Result("F", "F/call/return_0");
  EXPECT_EQ(Find(graph), Names{});
}

}  // namespace
}  // namespace tensorflow_recursion
