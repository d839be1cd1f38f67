// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/frame_tag.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace tensorflow_recursion {
namespace {

using Pair = std::pair<uint64_t, int64_t>;

Pair PairOf(const FrameTag& tag) { return {tag.id, tag.iteration}; }

TEST(FrameTagTest, TheRootIsTensorFlowsRoot) { EXPECT_EQ(PairOf(FrameTag()), Pair(0, 0)); }

TEST(FrameTagTest, TheSamePathGivesTheSameTag) {
  const FrameTag once = ChildTag(ChildTag({}, 7), 8, 3);
  const FrameTag again = ChildTag(ChildTag({}, 7), 8, 3);
  EXPECT_EQ(PairOf(once), PairOf(again));
}

TEST(FrameTagTest, CallsIterationsAndParentsTellTagsApart) {
  const FrameTag parent = ChildTag({}, 1);
  const FrameTag tag = ChildTag(parent, 2, 3);
  EXPECT_NE(PairOf(tag), PairOf(ChildTag(parent, 4, 3)));
  EXPECT_NE(PairOf(tag), PairOf(ChildTag(parent, 2, 4)));
  EXPECT_NE(PairOf(tag), PairOf(ChildTag({}, 2, 3)));
  EXPECT_NE(PairOf(tag), PairOf(ChildTag({parent.id, parent.iteration + 1}, 2, 3)));
  EXPECT_NE(PairOf(tag), PairOf(ChildTag({parent.id + 1, parent.iteration}, 2, 3)));
  EXPECT_NE(PairOf(tag), PairOf(ChildTag(parent, 3, 2)));
  EXPECT_NE(PairOf(tag), PairOf(parent));
  EXPECT_NE(PairOf(ChildTag({}, 0)), PairOf(FrameTag()));
}

// TensorFlow's executor computes them in PropagatorState::FindOrCreateChildFrame.
TEST(FrameTagTest, LoopsOfTheMainGraphHaveTensorFlowsTags) {
  const uint64_t name = tensorflow::Hash64("while/while_context");
  const FrameTag outer = MainLoopTag({}, name, 5);
  EXPECT_EQ(PairOf(outer), Pair(tensorflow::Hash64Combine(0, tensorflow::Hash64Combine(0, name)), 5));
  const uint64_t inner_name = tensorflow::Hash64("while/while/while_context");
  const FrameTag inner = MainLoopTag(outer, inner_name, 0);
  EXPECT_EQ(PairOf(inner), Pair(tensorflow::Hash64Combine(outer.id, tensorflow::Hash64Combine(5, inner_name)), 0));
}

// Small call ids, iterations and depths, as programs have them: the tags of a random tree.
TEST(FrameTagTest, MillionsOfPathsDoNotCollide) {
  constexpr int kPaths = 2'000'000;
  std::minstd_rand random(17);
  std::vector<FrameTag> tags = {FrameTag()};
  std::vector<Pair> all = {PairOf(tags[0])};
  std::vector<int> children = {0};
  while (tags.size() < kPaths) {
    const size_t parent = random() % tags.size();
    const int child = children[parent]++;  // call 1 + child / 4 of the parent, iteration child % 4
    tags.push_back(ChildTag(tags[parent], 1 + child / 4, child % 4));
    all.push_back(PairOf(tags.back()));
    children.push_back(0);
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  // Each half on its own is a hash of 64 bits: of so few no two are the same either.
  auto by_iteration = [](const Pair& a, const Pair& b) { return a.second < b.second; };
  std::sort(all.begin(), all.end(), by_iteration);
  auto same_iteration = [](const Pair& a, const Pair& b) { return a.second == b.second; };
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end(), same_iteration), all.end());
}

}  // namespace
}  // namespace tensorflow_recursion
