// Finds where values are handed on unchanged: through branches, to functions and back, from iteration to iteration.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_HAND_ONS_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_HAND_ONS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "cc/base/disjoint_sets.h"

namespace tensorflow_recursion {

// What is known of a value is known of all to which it is handed on. For example, in
//   f(n, x) = x if n < 1 else f(n - 1, x)
// the argument x is also the x of both sides, the argument of the inner call, and the result.
class HandOns {
 public:
  // Is called for each place where a value is handed on, with what is read there and the value that it becomes.
  using Visit = std::function<void(const Input& from, const Source& to)>;

  explicit HandOns(const FlowGraph& flow);

  // Visits what the node hands on; if it is a call, to its function and back.
  void VisitNode(NodeId id, const Visit& visit) const;
  // Visits what goes into the loop, out of it, and from iteration to iteration. For a loop that is not simple
  // (loop_variables.h), it visits only what goes out.
  void VisitLoop(const FlowLoop& loop, const Visit& visit) const;

  // The kResult node of output `index` of the function whose body is `region`; kNone if there is none.
  NodeId ResultOf(RegionId region, int index) const;

 private:
  void VisitSite(NodeId id, const Visit& visit) const;

  const FlowGraph& flow_;
  std::map<std::pair<RegionId, int>, NodeId> results_;
  // The exits of each loop, by the region of its body.
  std::map<RegionId, std::vector<NodeId>> exits_;
};

// Divides the values of a graph into classes. At first each value is a class of its own; then classes are joined.
class ValueClasses {
 public:
  explicit ValueClasses(const FlowGraph& flow);

  // A number greater than all roots.
  size_t size() const { return size_; }
  // The number that stands for the class of a value. A kResult has no port, but a value all the same: it counts as port
  // 0.
  size_t Root(const Source& source) const {
    return classes_.Root(first_[source.node] + static_cast<size_t>(source.port));
  }
  // Joins two classes, which are given by their roots. From now on `to` stands for both.
  void Join(size_t from, size_t to) { classes_.Join(from, to); }
  void Separate() { classes_ = DisjointSets(size_); }

 private:
  // The number of the value at port 0 of each node.
  IdVector<NodeId, size_t> first_;
  size_t size_ = 0;
  DisjointSets classes_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_HAND_ONS_H_
