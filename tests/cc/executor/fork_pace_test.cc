// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/fork_pace.h"

#include <gtest/gtest.h>

namespace tensorflow_recursion {
namespace {

// How many calls are made until it is time to search again.
int64_t CallsToNext(ForkPace pace) {
  int64_t calls = 0;
  for (; !pace.IsTime(); ++calls) pace.NoteCalls(1);
  return calls;
}

TEST(ForkPaceTest, ItIsTimeAtOnceWhileForksAreLarge) {
  ForkPace pace;
  EXPECT_TRUE(pace.IsTime());
  pace.NoteForked();
  EXPECT_TRUE(pace.IsTime());
  pace.NoteEnded(ForkPace::kWorthwhileCalls);
  pace.NoteForked();
  EXPECT_TRUE(pace.IsTime());
}

TEST(ForkPaceTest, SmallForksAreTriedMoreAndMoreRarely) {
  ForkPace pace;
  pace.NoteEnded(ForkPace::kWorthwhileCalls - 1);
  pace.NoteForked();
  EXPECT_EQ(CallsToNext(pace), ForkPace::kFirstInterval);
  pace.NoteNotBegun();
  pace.NoteForked();
  EXPECT_EQ(CallsToNext(pace), 2 * ForkPace::kFirstInterval);
  for (int i = 0; i < 20; ++i) pace.NoteNotBegun();
  pace.NoteForked();
  EXPECT_EQ(CallsToNext(pace), ForkPace::kLongestInterval);
}

TEST(ForkPaceTest, ALargeForkEndsTheWaiting) {
  ForkPace pace;
  for (int i = 0; i < 3; ++i) pace.NoteNotBegun();
  pace.NoteEnded(ForkPace::kWorthwhileCalls);
  pace.NoteForked();
  EXPECT_TRUE(pace.IsTime());
}

TEST(ForkPaceTest, ASearchWithoutSuccessIsRepeatedLaterTheMoreFramesItReads) {
  ForkPace pace;
  pace.NoteNothingFound(1000);
  EXPECT_EQ(CallsToNext(pace), 1000 * ForkPace::kCallsPerSearchedFrame);
}

}  // namespace
}  // namespace tensorflow_recursion
