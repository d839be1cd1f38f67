// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/register_stack.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tensorflow_recursion {
namespace {

const std::atomic<int64_t> kMuch{1 << 20};

size_t SizeOf(const RegisterStack& stack) { return static_cast<size_t>(stack.end() - stack.begin()); }

TEST(RegisterStackTest, WhatIsThereMovesAlong) {
  RegisterStack stack(nullptr, nullptr);
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
    RegisterStack stack(&run_bytes, &kMuch);
    ASSERT_TRUE(stack.Grow(10));
    EXPECT_EQ(run_bytes, 100 + static_cast<int64_t>(SizeOf(stack) * sizeof(uint64_t)));
    ASSERT_TRUE(stack.Grow(SizeOf(stack) + 1));
    EXPECT_EQ(run_bytes, 100 + static_cast<int64_t>(SizeOf(stack) * sizeof(uint64_t)));
  }
  EXPECT_EQ(run_bytes, 100);
}

TEST(RegisterStackTest, NearTheLimitItTakesWhatIsLeftAndNoMore) {
  constexpr int64_t kLimit = 5000 * sizeof(uint64_t);
  std::atomic<int64_t> limit{kLimit};
  std::atomic<int64_t> run_bytes{0};
  RegisterStack stack(&run_bytes, &limit);
  ASSERT_TRUE(stack.Grow(3000));
  ASSERT_TRUE(stack.Grow(4000)) << "twice as much would be too much";
  EXPECT_EQ(run_bytes, kLimit);
  EXPECT_FALSE(stack.Grow(5001));
  EXPECT_EQ(SizeOf(stack), 5000) << "it stays as it is";
  EXPECT_EQ(run_bytes, kLimit);
}

TEST(RegisterStackTest, ALimitThatHasFallenKeepsItFromGrowing) {
  std::atomic<int64_t> limit{1 << 20};
  std::atomic<int64_t> run_bytes{0};
  RegisterStack stack(&run_bytes, &limit);
  ASSERT_TRUE(stack.Grow(3000));
  const size_t size = SizeOf(stack);
  limit = -1;
  EXPECT_FALSE(stack.Grow(size + 1));
  EXPECT_EQ(SizeOf(stack), size);
  limit = 1 << 20;
  EXPECT_TRUE(stack.Grow(size + 1));
}

TEST(RegisterStackTest, MemoryBeyondWhatIsNeededIsGivenBack) {
  std::atomic<int64_t> run_bytes{0};
  RegisterStack stack(&run_bytes, &kMuch);
  ASSERT_TRUE(stack.Grow(3000));
  stack.Shrink(SizeOf(stack));
  EXPECT_GE(SizeOf(stack), 3000) << "there is no more than that";
  stack.Shrink(2000);
  EXPECT_EQ(SizeOf(stack), 0);
  EXPECT_EQ(run_bytes, 0);
}

}  // namespace
}  // namespace tensorflow_recursion
