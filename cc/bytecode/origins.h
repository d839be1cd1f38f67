// Finds the origins of a frame's numbers. Those with the same origin come at the same time, or are dead together.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_ORIGINS_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_ORIGINS_H_

#include <utility>
#include <vector>

#include "cc/analysis/condition.h"
#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// An origin is a set of events: an argument has come, a branch takes a side, a call has returned, a kernel has run.
// Arithmetic on numbers takes no time to speak of and adds no event. For example, in
//
//     def f(n, x):
//       return cond(n < 2, lambda: x, lambda: f(n - 1, g(x)) * tensor[n // 2])
//
// `n < 2` has the origin {n}, `n - 1` and `n // 2` have {n, the false side}. So the last two can be one operator, which
// fires when n has come and the side is taken, as each of them would alone.
//
// Arguments of a function come together if in every call they have the same origin in the caller. Here n and x don't:
// g(x) comes later than n - 1.
class Origins {
 public:
  // `order` is what SortNodes() says; `is_arithmetic` says which nodes take no time. No value may come from another
  // device.
  Origins(const FlowGraph& flow, const std::vector<NodeId>& order, IdVector<NodeId, bool> is_arithmetic);

  // The origin of what a node makes. It has a meaning for arithmetic only.
  const Condition& Of(NodeId node) const { return origin_of_[node]; }
  // Whether the node is arithmetic, and not made of too many events.
  bool IsArithmetic(NodeId node) const { return is_arithmetic_[node]; }

 private:
  Condition Of(const Source& source) const;
  Condition OfSide(const Condition& whole, NodeId node, const Event& side) const;
  void Compute();
  Condition Compute(NodeId node);
  Condition OfInputs(const FlowNode& node) const;
  void FindFirstEntries();
  bool SplitEntries();

  const FlowGraph& flow_;
  const std::vector<NodeId>& order_;
  IdVector<NodeId, bool> is_arithmetic_;
  // For each entry, the one that stands for all that come together with it: the first of them.
  IdVector<NodeId, NodeId> representative_;
  // The origin of each node as a whole. Its ports may have more events.
  IdVector<NodeId, Condition> origin_of_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_ORIGINS_H_
