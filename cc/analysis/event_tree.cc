// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/event_tree.h"

#include <utility>

namespace tensorflow_recursion {
namespace {

using Ptr = EventTree::Ptr;

Ptr MakeNode(int bit, uint64_t key, Ptr left, Ptr right) {
  auto node = std::make_shared<EventTree>();
  node->key = bit == 63 ? 0 : key >> (bit + 1) << (bit + 1);
  node->bit = bit;
  node->size = left->size + right->size;
  node->left = std::move(left);
  node->right = std::move(right);
  return node;
}

// `tree` with other sides, which may be empty.
Ptr WithSides(const Ptr& tree, Ptr left, Ptr right) {
  if (left == tree->left && right == tree->right) return tree;
  if (left == nullptr) return right;
  if (right == nullptr) return left;
  return MakeNode(tree->bit, tree->key, std::move(left), std::move(right));
}

// `tree` with another side in place of the one that `key` is in.
Ptr WithSide(const Ptr& tree, uint64_t key, Ptr side) {
  const bool is_left = tree->Side(key) == tree->left;
  return is_left ? WithSides(tree, std::move(side), tree->right) : WithSides(tree, tree->left, std::move(side));
}

// Joins two trees, neither of which covers the other's keys.
Ptr JoinApart(const Ptr& a, const Ptr& b) {
  int bit = 63;
  while (((a->key ^ b->key) >> bit & 1) == 0) --bit;
  return (a->key >> bit & 1) == 0 ? MakeNode(bit, a->key, a, b) : MakeNode(bit, a->key, b, a);
}

}  // namespace

Ptr MakeLeaf(uint64_t key) {
  auto leaf = std::make_shared<EventTree>();
  leaf->key = key;
  return leaf;
}

Ptr Union(const Ptr& a, const Ptr& b) {
  if (a == b || b == nullptr) return a;
  if (a == nullptr) return b;
  if (a->bit < b->bit) return Union(b, a);
  if (a->bit == b->bit) {
    if (a->key != b->key) return JoinApart(a, b);
    return a->bit == EventTree::kLeaf ? a : WithSides(a, Union(a->left, b->left), Union(a->right, b->right));
  }
  return a->Covers(b->key) ? WithSide(a, b->key, Union(a->Side(b->key), b)) : JoinApart(a, b);
}

Ptr Intersection(const Ptr& a, const Ptr& b) {
  if (a == b) return a;
  if (a == nullptr || b == nullptr) return nullptr;
  if (a->bit < b->bit) return Intersection(b, a);
  if (a->bit == b->bit) {
    if (a->key != b->key) return nullptr;
    if (a->bit == EventTree::kLeaf) return a;
    return WithSides(a, Intersection(a->left, b->left), Intersection(a->right, b->right));
  }
  return a->Covers(b->key) ? Intersection(a->Side(b->key), b) : nullptr;
}

Ptr Difference(const Ptr& a, const Ptr& b) {
  if (a == b || a == nullptr) return nullptr;
  if (b == nullptr) return a;
  if (a->bit < b->bit) return b->Covers(a->key) ? Difference(a, b->Side(a->key)) : a;
  if (a->bit == b->bit) {
    if (a->key != b->key) return a;
    if (a->bit == EventTree::kLeaf) return nullptr;
    return WithSides(a, Difference(a->left, b->left), Difference(a->right, b->right));
  }
  return a->Covers(b->key) ? WithSide(a, b->key, Difference(a->Side(b->key), b)) : a;
}

bool Includes(const Ptr& all, const Ptr& some) {
  if (all == some || some == nullptr) return true;
  if (all == nullptr || all->size < some->size || all->bit < some->bit) return false;
  if (all->bit > some->bit) return all->Covers(some->key) && Includes(all->Side(some->key), some);
  if (all->key != some->key) return false;
  return all->bit == EventTree::kLeaf || (Includes(all->left, some->left) && Includes(all->right, some->right));
}

}  // namespace tensorflow_recursion
