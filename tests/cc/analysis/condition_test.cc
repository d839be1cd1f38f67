// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/condition.h"

#include <gtest/gtest.h>

namespace tensorflow_recursion {
namespace {

const Event kP{NodeId(1), 1};
const Event kNotP{NodeId(1), 0};
const Event kQ{NodeId(2), 1};

TEST(ConditionTest, IsASetWhateverTheOrderOfItsEvents) {
  EXPECT_EQ((Condition{kQ, kP, kQ}), (Condition{kP, kQ}));
  EXPECT_NE((Condition{kP}), (Condition{kNotP}));
  EXPECT_EQ((Condition{kP, kQ}).size(), 2);
}

TEST(ConditionTest, AlwaysHoldsWithoutEvents) {
  EXPECT_TRUE(Condition().is_always());
  EXPECT_TRUE(Condition().Implies(Condition()));
  EXPECT_TRUE((Condition{kP}).Implies(Condition()));
  EXPECT_FALSE(Condition().Implies(Condition{kP}));
}

TEST(ConditionTest, MoreEventsImplyFewer) {
  EXPECT_TRUE((Condition{kP, kQ}).Implies(Condition{kP}));
  EXPECT_FALSE((Condition{kP}).Implies(Condition{kP, kQ}));
  EXPECT_FALSE((Condition{kP}).Implies(Condition{kNotP}));
}

TEST(ConditionTest, BothNeedTheEventsOfEach) {
  EXPECT_EQ((Condition{kP}).And(Condition{kQ}), (Condition{kP, kQ}));
  EXPECT_EQ((Condition{kP}).And(Condition()), (Condition{kP}));
}

TEST(ConditionTest, OfEitherTheCommonEventsAreKnown) {
  EXPECT_EQ((Condition{kP, kQ}).Common(Condition{kQ}), (Condition{kQ}));
  EXPECT_TRUE((Condition{kP}).Common(Condition{kNotP}).is_always());
}

TEST(ConditionTest, LeavesEventsOut) {
  EXPECT_EQ((Condition{kP, kQ}).Without(Condition{kQ, kNotP}), (Condition{kP}));
  EXPECT_EQ((Condition{kP, kQ}).Without(kP), (Condition{kQ}));
}

}  // namespace
}  // namespace tensorflow_recursion
