// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/any_condition.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>

#include "tests/cc/analysis/flow.h"

namespace tensorflow_recursion {
namespace {

// Branches on p and on q, and a choice among three sides.
class AnyConditionTest : public ::testing::Test {
 protected:
  AnyConditionTest() : built_(Branches()) { EXPECT_TRUE(built_.status.ok()) << built_.status; }

  static StaticGraph Branches() {
    StaticGraph graph;
    graph.Arg("p", 0, tensorflow::DT_BOOL).Arg("q", 1, tensorflow::DT_BOOL).Arg("i", 2).Arg("x", 3);
    graph.Op("on_p", "Switch", {"x", "p"}).Op("on_q", "Switch", {"x", "q"}).Retval("on_p").Retval("on_q", 1);
    graph.Node("on_i", "_SwitchN", {"x", "i"}, {{"T", kInt}, {"num_outs", 3}}).Retval("on_i", 2);
    return graph;
  }

  // The side that a branch takes.
  Event SideOf(const std::string& node, uint32_t side) const {
    return {built_[built_.Find(node, OpKind::kSwitch)].branch, side};
  }
  Event ChoiceOf(uint32_t side) const { return {built_.Find("on_i", OpKind::kSwitchN), side}; }
  std::optional<Condition> Any(const std::set<Condition>& conditions) const { return AnyOf(built_.flow, conditions); }

  const BuiltFlow built_;
  const Event p_{SideOf("on_p", 1)}, not_p_{SideOf("on_p", 0)}, q_{SideOf("on_q", 1)}, not_q_{SideOf("on_q", 0)};
  // What happens at a node that is no branch.
  const Event other_{built_.Find("x", OpKind::kArgument), 0};
};

TEST_F(AnyConditionTest, AllSidesOfABranchTogetherAreAlways) {
  EXPECT_EQ(Any({{p_}, {not_p_}}), Condition());
  EXPECT_EQ(Any({{p_, other_}, {not_p_, other_}}), Condition{other_});
  EXPECT_EQ(Any({{ChoiceOf(0)}, {ChoiceOf(1)}, {ChoiceOf(2)}}), Condition());
}

TEST_F(AnyConditionTest, SidesOfABranchInABranchAreJoinedFirst) {
  EXPECT_EQ(Any({{p_, q_}, {p_, not_q_}, {not_p_}}), Condition());
  EXPECT_EQ(Any({{p_, q_}, {p_, not_q_}}), Condition{p_});
}

TEST_F(AnyConditionTest, WhatImpliesAnotherConditionAddsNothing) {
  EXPECT_EQ(Any({{p_}, {p_, other_}}), Condition{p_});
}

TEST_F(AnyConditionTest, IsUnknownWhereNoSetOfEventsSaysIt) {
  EXPECT_EQ(Any({}), std::nullopt);
  EXPECT_EQ(Any({{p_}, {other_}}), std::nullopt);
  EXPECT_EQ(Any({{p_}, {q_}}), std::nullopt);
  EXPECT_EQ(Any({{p_, other_}, {not_p_}}), std::nullopt);
  EXPECT_EQ(Any({{ChoiceOf(0)}, {ChoiceOf(2)}}), std::nullopt);
}

TEST_F(AnyConditionTest, OneBranchIsJoinedAtATime) {
  std::set<Condition> conditions = {{p_, q_}, {p_, not_q_}, {not_p_, q_}, {not_p_, not_q_}};
  for (const size_t left : {3, 2, 1}) {
    EXPECT_TRUE(JoinSides(built_.flow, &conditions));
    EXPECT_EQ(conditions.size(), left);
  }
  EXPECT_EQ(*conditions.begin(), Condition());
  EXPECT_FALSE(JoinSides(built_.flow, &conditions));
}

}  // namespace
}  // namespace tensorflow_recursion
