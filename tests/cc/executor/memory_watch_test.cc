// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/memory_watch.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tensorflow_recursion {
namespace {

constexpr int64_t kMebibyte = 1 << 20;

class MemoryWatchTest : public ::testing::Test {
 protected:
  bool IsTooLarge(int64_t mebibytes) { return watch_.IsTooLarge(mebibytes * kMebibyte); }

  MemoryWatch watch_{512 * kMebibyte};
};

TEST_F(MemoryWatchTest, ARunThatTakesTheReserveIsTooLarge) {
  EXPECT_FALSE(IsTooLarge(4000));
  EXPECT_FALSE(IsTooLarge(512));
  EXPECT_TRUE(IsTooLarge(511));
  EXPECT_EQ(watch_.least(), 511 * kMebibyte);
  EXPECT_TRUE(IsTooLarge(300));
}

TEST_F(MemoryWatchTest, ARunThatBeginsWithLittleMemoryMayTakeSome) {
  EXPECT_FALSE(IsTooLarge(400));
  EXPECT_FALSE(IsTooLarge(337));
  EXPECT_TRUE(IsTooLarge(336));
}

TEST_F(MemoryWatchTest, RunsThatAreStoppedOneAfterTheOtherLeaveSomething) {
  int64_t mebibytes = 4000;
  for (int run = 0; run < 12; ++run) {
    watch_ = MemoryWatch(512 * kMebibyte);
    EXPECT_FALSE(IsTooLarge(mebibytes));
    do {
      ASSERT_GT(--mebibytes, 0);
    } while (!IsTooLarge(mebibytes));
  }
}

TEST_F(MemoryWatchTest, ARunThatDoesNotGrowIsNeverTooLarge) {
  EXPECT_FALSE(IsTooLarge(400));
  EXPECT_FALSE(IsTooLarge(380));
  EXPECT_FALSE(IsTooLarge(400));
  EXPECT_FALSE(IsTooLarge(350));
}

TEST_F(MemoryWatchTest, ARunThatGivesMemoryBackIsNotTooLarge) {
  EXPECT_FALSE(IsTooLarge(4000));
  EXPECT_TRUE(IsTooLarge(400));
  EXPECT_FALSE(IsTooLarge(401));
  EXPECT_FALSE(IsTooLarge(450));
  EXPECT_TRUE(IsTooLarge(399)) << "it grows again";
}

TEST_F(MemoryWatchTest, ARunThatGivesNothingBackStaysTooLarge) {
  EXPECT_FALSE(IsTooLarge(4000));
  EXPECT_TRUE(IsTooLarge(400));
  EXPECT_TRUE(IsTooLarge(400)) << "its next call may be further away than the next look";
}

TEST_F(MemoryWatchTest, ARunThatGrowsOnWithoutCallsMustEnd) {
  EXPECT_FALSE(IsTooLarge(4000));
  EXPECT_TRUE(IsTooLarge(510));
  EXPECT_TRUE(IsTooLarge(255));
  EXPECT_FALSE(watch_.MustEnd());
  EXPECT_FALSE(IsTooLarge(400)) << "it unwinds";
  EXPECT_TRUE(IsTooLarge(254));
  EXPECT_TRUE(watch_.MustEnd());
}

TEST_F(MemoryWatchTest, ARunThatBeginsWithLittleMemoryMayTakeHalfOfWhatIsLeft) {
  EXPECT_FALSE(IsTooLarge(100));
  EXPECT_TRUE(IsTooLarge(60));
  EXPECT_TRUE(IsTooLarge(30));
  EXPECT_FALSE(watch_.MustEnd());
  EXPECT_TRUE(IsTooLarge(29));
  EXPECT_TRUE(watch_.MustEnd());
}

TEST_F(MemoryWatchTest, NobodyIsTooLargeWhereTheMemoryIsNotKnown) {
  EXPECT_FALSE(watch_.IsTooLarge(kUnknownMemory));
  EXPECT_FALSE(IsTooLarge(400)) << "the first that is known";
  EXPECT_FALSE(watch_.IsTooLarge(kUnknownMemory));
  EXPECT_TRUE(IsTooLarge(300));
}

}  // namespace
}  // namespace tensorflow_recursion
