// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/partial_calls.h"

#include <gtest/gtest.h>

#include "cc/program/program.h"

namespace tensorflow_recursion {
namespace {

// A region with two call sites, operators 0 and 1.
class PartialCallsTest : public ::testing::Test {
 protected:
  PartialCallsTest() {
    region_.ops.resize(2);
    region_.ops[0].kind = region_.ops[1].kind = OpKind::kCallSite;
    region_.num_counted = 2;
    caller_.region = other_.region = &region_;
  }

  Region region_;
  const OpId first_{0};
  const OpId second_{1};
  Frame caller_{};
  Frame other_{};
  PartialCalls calls_;
};

TEST_F(PartialCallsTest, CallsAreAsUsualUntilSomethingIsKnownOfThem) {
  EXPECT_EQ(calls_.Find(&caller_, first_), nullptr);
  calls_.SetChild(&caller_, first_, &other_);
  ASSERT_NE(calls_.Find(&caller_, first_), nullptr);
  EXPECT_EQ(calls_.Find(&caller_, first_)->child, &other_);
  EXPECT_EQ(calls_.Find(&caller_, second_), nullptr);
  EXPECT_EQ(calls_.Find(&other_, first_), nullptr);
  calls_.Erase(&caller_, first_);
  EXPECT_EQ(calls_.Find(&caller_, first_), nullptr);
}

TEST_F(PartialCallsTest, TheSameDeathCountsOnce) {
  EXPECT_TRUE(calls_.AddDeadArgument(&caller_, second_, 2));
  EXPECT_FALSE(calls_.AddDeadArgument(&caller_, second_, 2));
  EXPECT_TRUE(calls_.AddDeadArgument(&caller_, second_, 0));
  const PartialCall* call = calls_.Find(&caller_, second_);
  ASSERT_NE(call, nullptr);
  EXPECT_EQ(call->dead_arguments.size(), 2);
  EXPECT_TRUE(call->is_dead(0));
  EXPECT_FALSE(call->is_dead(1));
  EXPECT_TRUE(call->is_dead(2));
}

TEST_F(PartialCallsTest, AFrameThatEndsTakesItsCallsWithIt) {
  calls_.SetChild(&caller_, first_, &other_);
  calls_.AddDeadArgument(&caller_, second_, 0);
  calls_.AddDeadArgument(&other_, second_, 0);
  calls_.EraseAll(&caller_);
  EXPECT_EQ(calls_.Find(&caller_, first_), nullptr);
  EXPECT_EQ(calls_.Find(&caller_, second_), nullptr);
  EXPECT_NE(calls_.Find(&other_, second_), nullptr);
  calls_.EraseAll(&other_);
  EXPECT_TRUE(calls_.empty());
}

}  // namespace
}  // namespace tensorflow_recursion
