// Sets of events that share memory for what they have in common. To make a set from another one and one more event
// takes time and memory in the logarithm of its size.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_EVENT_TREE_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_EVENT_TREE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tensorflow_recursion {

// A set of 64-bit keys, as a binary tree over their bits (a Patricia tree, Okasaki and Gill 1998): a node divides its
// keys by the highest bit in which they differ. Trees never change, so they can share subtrees. For example, in a chain
// of n calls, each of which lives under all events that those before it do, the sets have n * n / 2 keys in all, but
// only some n * log(n) nodes.
struct EventTree {
  using Ptr = std::shared_ptr<const EventTree>;  // nullptr: the empty set

  static constexpr int kLeaf = -1;

  // The only key of a leaf. In any other tree the bits above `bit`, which all its keys have in common.
  uint64_t key = 0;
  // The highest bit in which keys differ: `left` has those where it is 0, `right` those where it is 1. A leaf has
  // kLeaf.
  int bit = kLeaf;
  // How many keys there are.
  size_t size = 1;
  Ptr left, right;

  const Ptr& Side(uint64_t of) const { return (of >> bit & 1) != 0 ? right : left; }
  // Whether the key may be in the set, by the bits above `bit`.
  bool Covers(uint64_t other) const { return bit == 63 || other >> (bit + 1) == key >> (bit + 1); }
};

EventTree::Ptr MakeLeaf(uint64_t key);
// The results share all that they can with `a` and `b`, up to being one of them.
EventTree::Ptr Union(const EventTree::Ptr& a, const EventTree::Ptr& b);
EventTree::Ptr Intersection(const EventTree::Ptr& a, const EventTree::Ptr& b);
EventTree::Ptr Difference(const EventTree::Ptr& a, const EventTree::Ptr& b);
bool Includes(const EventTree::Ptr& all, const EventTree::Ptr& some);

// Calls `visit` with each key, the lowest first.
template <typename Visit>
void ForEachKey(const EventTree::Ptr& tree, Visit visit) {
  if (tree == nullptr) return;
  if (tree->bit == EventTree::kLeaf) {
    visit(tree->key);
    return;
  }
  ForEachKey(tree->left, visit);
  ForEachKey(tree->right, visit);
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_EVENT_TREE_H_
