// SPDX-License-Identifier: Apache-2.0
#include "cc/base/disjoint_sets.h"

#include <gtest/gtest.h>

namespace tensorflow_recursion {
namespace {

TEST(DisjointSetsTest, NumbersAreAloneAtFirst) {
  const DisjointSets sets(3);
  for (size_t number = 0; number < 3; ++number) EXPECT_EQ(sets.Root(number), number);
}

TEST(DisjointSetsTest, TheRootOfTheSecondStandsForBoth) {
  DisjointSets sets(5);
  sets.Join(0, 1);
  sets.Join(2, 3);
  EXPECT_EQ(sets.Root(0), 1u);
  EXPECT_EQ(sets.Root(2), 3u);
  sets.Join(0, 2);
  for (size_t number = 0; number < 4; ++number) EXPECT_EQ(sets.Root(number), 3u);
  EXPECT_EQ(sets.Root(4), 4u);
}

TEST(DisjointSetsTest, WhatIsOneSetStaysOne) {
  DisjointSets sets(2);
  sets.Join(0, 1);
  sets.Join(1, 0);
  sets.Join(0, 0);
  EXPECT_EQ(sets.Root(0), 1u);
  EXPECT_EQ(sets.Root(1), 1u);
}

}  // namespace
}  // namespace tensorflow_recursion
