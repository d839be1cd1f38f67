// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/event_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <set>
#include <vector>

namespace tensorflow_recursion {
namespace {

using Keys = std::set<uint64_t>;

EventTree::Ptr TreeOf(const Keys& keys) {
  EventTree::Ptr tree;
  for (const uint64_t key : keys) tree = Union(tree, MakeLeaf(key));
  return tree;
}

std::vector<uint64_t> KeysOf(const EventTree::Ptr& tree) {
  std::vector<uint64_t> keys;
  ForEachKey(tree, [&](uint64_t key) { keys.push_back(key); });
  return keys;
}

void CollectNodes(const EventTree::Ptr& tree, std::set<const EventTree*>* nodes) {
  if (tree == nullptr || !nodes->insert(tree.get()).second) return;
  CollectNodes(tree->left, nodes);
  CollectNodes(tree->right, nodes);
}

// Sets that have some keys in common, and the lowest and highest bit among those in which keys differ.
class RandomSets {
 public:
  Keys Next() {
    Keys keys;
    const size_t size = random_() % 12;
    while (keys.size() < size) keys.insert(random_() % 4 == 0 ? uint64_t{random_() % 3} << 62 : random_() % 24);
    return keys;
  }

 private:
  std::mt19937 random_{7};
};

using SetOperation = std::insert_iterator<Keys> (*)(Keys::iterator, Keys::iterator, Keys::iterator, Keys::iterator,
                                                    std::insert_iterator<Keys>);

std::vector<uint64_t> Expected(SetOperation operation, const Keys& a, const Keys& b) {
  Keys result;
  operation(a.begin(), a.end(), b.begin(), b.end(), std::inserter(result, result.end()));
  return {result.begin(), result.end()};
}

TEST(EventTreeTest, DoesWhatSortedSetsDo) {
  RandomSets sets;
  for (int i = 0; i < 2000; ++i) {
    const Keys a = sets.Next();
    const Keys b = sets.Next();
    const EventTree::Ptr x = TreeOf(a);
    const EventTree::Ptr y = TreeOf(b);
    EXPECT_EQ(KeysOf(Union(x, y)), Expected(std::set_union, a, b));
    EXPECT_EQ(KeysOf(Intersection(x, y)), Expected(std::set_intersection, a, b));
    EXPECT_EQ(KeysOf(Difference(x, y)), Expected(std::set_difference, a, b));
    EXPECT_EQ(Includes(x, y), std::includes(a.begin(), a.end(), b.begin(), b.end()));
    EXPECT_TRUE(Includes(Union(x, y), y));
    EXPECT_EQ(x == nullptr ? 0 : x->size, a.size());
  }
}

TEST(EventTreeTest, ResultsThatAreAnOperandAreThatOperand) {
  const EventTree::Ptr all = TreeOf({1, 2, 3, 70});
  const EventTree::Ptr some = TreeOf({2, 70});
  EXPECT_EQ(Union(all, some), all);
  EXPECT_EQ(Union(some, all)->size, all->size);
  EXPECT_EQ(Difference(all, TreeOf({5})), all);
  EXPECT_EQ(Intersection(all, all), all);
  EXPECT_EQ(Difference(all, all), nullptr);
}

TEST(EventTreeTest, AChainOfSetsSharesItsNodes) {
  constexpr uint64_t kLength = 1024;
  std::vector<EventTree::Ptr> chain = {nullptr};
  std::set<const EventTree*> nodes;
  for (uint64_t i = 0; i < kLength; ++i) {
    chain.push_back(Union(chain.back(), MakeLeaf(i << 32)));
    CollectNodes(chain.back(), &nodes);
  }
  EXPECT_LE(nodes.size(), kLength * 12) << "each set adds a leaf, and the nodes above it";
}

}  // namespace
}  // namespace tensorflow_recursion
