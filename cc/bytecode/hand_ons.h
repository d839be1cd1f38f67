// Where values are handed on unchanged: through branches, to functions and back, from iteration to iteration.
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
// the argument x is the x of both sides, of the inner call, and the result.
class HandOns {
 public:
  // Is called for each place with what is read there, and which value it is from there on.
  using Visit = std::function<void(const Input& from, const Source& to)>;

  explicit HandOns(const FlowGraph& flow);

  // Through the node; if that is a call, to its function and back.
  void VisitNode(NodeId id, const Visit& visit) const;
  // Into the loop, out of it, and from iteration to iteration; of loops that are not simple (loop_variables.h) only
  // out.
  void VisitLoop(const FlowLoop& loop, const Visit& visit) const;

  // The kResult node of output `index` of the function whose body is `region`; kNone if there is none.
  NodeId ResultOf(RegionId region, int index) const;

 private:
  void VisitSite(NodeId id, const Visit& visit) const;

  const FlowGraph& flow_;
  std::map<std::pair<RegionId, int>, NodeId> results_;
  std::map<RegionId, std::vector<NodeId>> exits_;  // of loops, by the region of the body
};

// The values of a graph in classes, each of which becomes what the values are that it is joined with.
class ValueClasses {
 public:
  explicit ValueClasses(const FlowGraph& flow);

  // A number greater than all roots.
  size_t size() const { return size_; }
  // What stands for the class of a value. A result has no port, but a value: that of port 0.
  size_t Root(const Source& source) const {
    return classes_.Root(first_[source.node] + static_cast<size_t>(source.port));
  }
  // `to`, a root, stands for both classes from now on.
  void Join(size_t from, size_t to) { classes_.Join(from, to); }
  void Separate() { classes_ = DisjointSets(size_); }

 private:
  IdVector<NodeId, size_t> first_;  // the value of port 0
  size_t size_ = 0;
  DisjointSets classes_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_HAND_ONS_H_
