// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/call_decision.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "tests/cc/analysis/flow.h"

namespace tensorflow_recursion {
namespace {

using Arguments = std::set<int>;

constexpr int64_t kCall = 1;

CallLives LivesOf(const StaticGraph& graph) {
  BuiltFlow built(graph);
  EXPECT_TRUE(built.status.ok()) << built.status;
  CallLives lives;
  lives.Find(std::move(built.flow));
  return lives;
}

void AddSum(StaticGraph* graph) {
  graph->Function("F", {"a", "b"}).Op("F/sum", "AddV2", {"F/a", "F/b"}).Result("F", "F/sum");
}

// A call with two arguments, of which some may be the sides of one branch.
CallLives LivesOfSwitched(const Inputs& arguments) {
  StaticGraph graph;
  graph.Arg("p", 0, tensorflow::DT_BOOL).Arg("x", 1).Op("switch", "Switch", {"x", "p"});
  graph.Call("main", "F", kCall, arguments).Retval("main/return_0");
  AddSum(&graph);
  return LivesOf(graph);
}

TEST(CallLivesTest, AnArgumentThatAlwaysLivesDecidesBesideOneThatMayBeDead) {
  const CallLives lives = LivesOfSwitched({"x", "switch"});
  EXPECT_EQ(lives.DecidingArguments(kCall), Arguments({0, 1}));
  EXPECT_TRUE(lives.IsDecidedBy(kCall, {0}));
  EXPECT_FALSE(lives.IsDecidedBy(kCall, {1}));
}

TEST(CallLivesTest, ArgumentsOfTwoSidesDecideOnlyTogether) {
  const CallLives lives = LivesOfSwitched({"switch", "switch:1"});
  EXPECT_FALSE(lives.IsDecidedBy(kCall, {0}));
  EXPECT_FALSE(lives.IsDecidedBy(kCall, {1}));
  EXPECT_TRUE(lives.IsDecidedBy(kCall, {0, 1}));
}

TEST(CallLivesTest, AConstantGoesWithTheOtherArguments) {
  StaticGraph graph;
  graph.Arg("p", 0, tensorflow::DT_BOOL)
      .Arg("x", 1)
      .Op("switch", "Switch", {"x", "p"})
      .Op("side", "Identity", {"switch"});
  graph.Const("one", 1, {"^side"}).Call("main", "F", kCall, {"side", "one"}).Retval("main/return_0");
  AddSum(&graph);
  const CallLives lives = LivesOf(graph);
  EXPECT_EQ(lives.DecidingArguments(kCall), Arguments({0}));
  EXPECT_TRUE(lives.IsDecidedBy(kCall, {0}));
}

TEST(CallLivesTest, NothingIsKnownOfAGraphWithACycle) {
  StaticGraph graph;
  graph.Arg("x").Call("main", "F", kCall, {"x", "x"}).Retval("main/return_0");
  AddSum(&graph);
  BuiltFlow built(graph);
  const NodeId sum = built.Find("F/sum", OpKind::kScalar);
  built.flow.nodes[sum].controls.push_back({sum, 0});
  CallLives lives;
  lives.Find(std::move(built.flow));
  EXPECT_TRUE(lives.IsDecidedBy(kCall, {}));
}

}  // namespace
}  // namespace tensorflow_recursion
