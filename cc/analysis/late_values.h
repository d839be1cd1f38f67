// Finds which values may come late: only after something that a run may have to wait for, such as a queue or a receive.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_LATE_VALUES_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_LATE_VALUES_H_

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// Marks the nodes of which `counts` is true, and all that fire only after a marked one of the same frame. `order` is
// the result of SortNodes; `counts` may ask which of the nodes before are marked.
void MarkNodesBehind(const FlowGraph& flow, const std::vector<NodeId>& order,
                     const std::function<bool(const FlowNode&)>& counts, IdVector<NodeId, bool>* marked);

// The nodes that fire only after a kernel that may wait. A call waits if its callee does, a loop if its body does. For
// example, if F takes an element from a queue, F(x) + 1 may come late, and so may what a caller of F computes from its
// results.
class LateValues {
 public:
  // Says whether the kernel of a node may wait.
  using MayWait = std::function<bool(const FlowNode&)>;

  // `flow` and `order`, the result of SortNodes, must outlive it.
  LateValues(const FlowGraph& flow, const std::vector<NodeId>& order, const MayWait& may_wait);

  // Lets an argument be late if any call passes a late value. Before this is called, all arguments of a function count
  // as there when its frame opens.
  void FollowArguments();

  bool IsLate(NodeId node) const { return is_late_[node]; }
  // Whether any call passes a late value as argument `index` of `function`, once FollowArguments has been called.
  bool IsLateArgument(const std::string& function, int index) const;

 private:
  void FindRegions();
  void MarkNodes();
  bool IsLateByItself(const FlowNode& node) const;
  bool IsLateEntry(const FlowNode& entry) const;
  bool AddLateArguments();

  const FlowGraph& flow_;
  const std::vector<NodeId>& order_;
  const MayWait may_wait_;
  // Whether a kernel in the region, or in what the region calls, may wait.
  IdVector<RegionId, bool> waits_inside_;
  IdVector<NodeId, bool> is_late_;
  std::set<std::pair<RegionId, int>> late_arguments_;
};

// Finds what a frame gets only after a stateful kernel has run, which may be in a call that the frame makes.
LateValues FindValuesAfterStatefulKernels(const FlowGraph& flow, const std::vector<NodeId>& order);

// Finds what a program gets only after an observable side effect, which may be in another frame.
LateValues FindValuesAfterSideEffects(const FlowGraph& flow, const std::vector<NodeId>& order);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_LATE_VALUES_H_
