// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/register_stack.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tensorflow_recursion {
namespace {

size_t SizeOf(const RegisterStack& stack) { return static_cast<size_t>(stack.end() - stack.begin()); }

TEST(RegisterStackTest, WhatIsThereMovesAlong) {
  RegisterStack stack(nullptr, 0);
  ASSERT_TRUE(stack.Grow(10));
  ASSERT_GE(SizeOf(stack), 10);
  stack.begin()[3] = 7;
  ASSERT_TRUE(stack.Grow(1'000'000));
  ASSERT_GE(SizeOf(stack), 1'000'000);
  EXPECT_EQ(stack.begin()[3], 7);
}

TEST(RegisterStackTest, WhatItTakesCountsForTheRun) {
  std::atomic<int64_t> run_bytes{100};
  {
    RegisterStack stack(&run_bytes, 1 << 20);
    ASSERT_TRUE(stack.Grow(10));
    EXPECT_EQ(run_bytes, 100 + static_cast<int64_t>(SizeOf(stack) * sizeof(uint64_t)));
    ASSERT_TRUE(stack.Grow(SizeOf(stack) + 1));
    EXPECT_EQ(run_bytes, 100 + static_cast<int64_t>(SizeOf(stack) * sizeof(uint64_t)));
  }
  EXPECT_EQ(run_bytes, 100);
}

TEST(RegisterStackTest, NearTheLimitItTakesWhatIsLeftAndNoMore) {
  constexpr int64_t kLimit = 5000 * sizeof(uint64_t);
  std::atomic<int64_t> run_bytes{0};
  RegisterStack stack(&run_bytes, kLimit);
  ASSERT_TRUE(stack.Grow(3000));
  ASSERT_TRUE(stack.Grow(4000)) << "twice as much would be too much";
  EXPECT_EQ(run_bytes, kLimit);
  EXPECT_FALSE(stack.Grow(5001));
  EXPECT_EQ(SizeOf(stack), 5000) << "it stays as it is";
  EXPECT_EQ(run_bytes, kLimit);
}

TEST(RegisterStackTest, MemoryBeyondWhatIsNeededIsGivenBack) {
  std::atomic<int64_t> run_bytes{0};
  RegisterStack stack(&run_bytes, 1 << 20);
  ASSERT_TRUE(stack.Grow(3000));
  stack.Shrink(SizeOf(stack));
  EXPECT_GE(SizeOf(stack), 3000) << "there is no more than that";
  stack.Shrink(2000);
  EXPECT_EQ(SizeOf(stack), 0);
  EXPECT_EQ(run_bytes, 0);
}

}  // namespace
}  // namespace tensorflow_recursion
