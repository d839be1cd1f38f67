// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/call_decisions.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "tests/cc/analysis/flow.h"

namespace tensorflow_recursion {
namespace {

using Arguments = std::set<int>;

constexpr int64_t kCall = 1;

CallDecisions DecisionsOf(const StaticGraph& graph) {
  BuiltFlow built(graph);
  EXPECT_TRUE(built.status.ok()) << built.status;
  CallDecisions decisions;
  decisions.Find(std::move(built.flow));
  return decisions;
}

void AddSum(StaticGraph* graph) {
  graph->Function("F", {"a", "b"}).Op("F/sum", "AddV2", {"F/a", "F/b"}).Result("F", "F/sum");
}

// A call with two arguments, of which some may be the sides of one branch.
CallDecisions DecisionsOfSwitched(const Inputs& arguments) {
  StaticGraph graph;
  graph.Arg("p", 0, tensorflow::DT_BOOL).Arg("x", 1).Op("switch", "Switch", {"x", "p"});
  graph.Call("main", "F", kCall, arguments).Retval("main/return_0");
  AddSum(&graph);
  return DecisionsOf(graph);
}

TEST(CallDecisionsTest, AnArgumentThatAlwaysLivesDecidesBesideOneThatMayBeDead) {
  const CallDecisions decisions = DecisionsOfSwitched({"x", "switch"});
  EXPECT_EQ(decisions.DecidingArguments(kCall), Arguments({0, 1}));
  EXPECT_TRUE(decisions.IsDecidedBy(kCall, {0}));
  EXPECT_FALSE(decisions.IsDecidedBy(kCall, {1}));
}

TEST(CallDecisionsTest, ArgumentsOfTwoSidesDecideOnlyTogether) {
  const CallDecisions decisions = DecisionsOfSwitched({"switch", "switch:1"});
  EXPECT_FALSE(decisions.IsDecidedBy(kCall, {0}));
  EXPECT_FALSE(decisions.IsDecidedBy(kCall, {1}));
  EXPECT_TRUE(decisions.IsDecidedBy(kCall, {0, 1}));
}

TEST(CallDecisionsTest, AConstantGoesWithTheOtherArguments) {
  StaticGraph graph;
  graph.Arg("p", 0, tensorflow::DT_BOOL)
      .Arg("x", 1)
      .Op("switch", "Switch", {"x", "p"})
      .Op("side", "Identity", {"switch"});
  graph.Const("one", 1, {"^side"}).Call("main", "F", kCall, {"side", "one"}).Retval("main/return_0");
  AddSum(&graph);
  const CallDecisions decisions = DecisionsOf(graph);
  EXPECT_EQ(decisions.DecidingArguments(kCall), Arguments({0}));
  EXPECT_TRUE(decisions.IsDecidedBy(kCall, {0}));
}

TEST(CallDecisionsTest, NothingIsKnownOfAGraphWithACycle) {
  StaticGraph graph;
  graph.Arg("x").Call("main", "F", kCall, {"x", "x"}).Retval("main/return_0");
  AddSum(&graph);
  BuiltFlow built(graph);
  const NodeId sum = built.Find("F/sum", OpKind::kScalar);
  built.flow.nodes[sum].controls.push_back({sum, 0});
  CallDecisions decisions;
  decisions.Find(std::move(built.flow));
  EXPECT_TRUE(decisions.IsDecidedBy(kCall, {}));
}

}  // namespace
}  // namespace tensorflow_recursion
