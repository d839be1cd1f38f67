// Numbers in disjoint sets, of which two at a time become one.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BASE_DISJOINT_SETS_H_
#define TENSORFLOW_RECURSION_CC_BASE_DISJOINT_SETS_H_

#include <cstddef>
#include <numeric>
#include <vector>

namespace tensorflow_recursion {

// Holds the numbers from 0 to `size` - 1. At first each is a set of its own. (Union-find with path halving, Tarjan
// 1975.)
class DisjointSets {
 public:
  explicit DisjointSets(size_t size) : parents_(size) { std::iota(parents_.begin(), parents_.end(), size_t{0}); }

  // The number that stands for all of the set.
  size_t Root(size_t number) const {
    while (parents_[number] != number) number = parents_[number] = parents_[parents_[number]];
    return number;
  }

  // From now on the root of `b` stands for both sets.
  void Join(size_t a, size_t b) { parents_[Root(a)] = Root(b); }

 private:
  mutable std::vector<size_t> parents_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BASE_DISJOINT_SETS_H_
