// Under which condition each value of a graph is live, seen through conditionals, loops and calls.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_CONDITIONS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_CONDITIONS_H_

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cc/analysis/condition.h"
#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// Two values with the same condition live and die together; of others nothing is known.
//
// Unlike FrameConditions, which looks at each frame by itself, this finds that the values of ordinary programs live
// together: what both branches of a conditional make lives as what goes into it, arguments of a call as the call, its
// results as its arguments, a loop's exits as its variables. All of that is assumed until something in the graph says
// otherwise: Find computes all conditions, looks for calls and loops that contradict the assumptions, and starts anew
// without these.
class Conditions {
 public:
  // `flow` must outlive it. To be asked before DropSuperfluousWaits.
  explicit Conditions(const FlowGraph& flow) : flow_(flow) {}

  // InvalidArgument if the nodes form a cycle.
  absl::Status Find();

  Condition Of(const Input& input) const;
  // Whether some variables of the loop of `region` may live while others are dead, or leave it, or go on.
  bool IsPartial(RegionId region) const { return partial_loops_.count(region) > 0; }
  // The condition that any of `conditions` holds; nullopt if there is none that says so.
  std::optional<Condition> AnyOf(const std::vector<Condition>& conditions) const;

 private:
  // Pass over all nodes.
  void FindChoices();
  void FindExits();
  void Compute(NodeId node);
  Condition OfSource(const Source& source) const;
  Condition OfAll(const FlowNode& node) const;
  Condition OfMerge(NodeId node) const;
  Condition OfSite(NodeId node) const;
  Condition OfStart(NodeId node) const;
  Condition OfEntry(NodeId node) const;
  // What contradicts the assumptions; true if anything new was found.
  bool FindLateArguments();
  bool FindDeadResults();
  bool FindPartialLoops();
  bool StartsPartially(const FlowLoop& loop) const;
  bool EndsPartially(const FlowLoop& loop) const;

  const FlowGraph& flow_;
  std::vector<NodeId> order_;
  IdVector<NodeId, Condition> conditions_;           // of the node as a whole
  std::map<RegionId, std::vector<NodeId>> exits_;    // of a loop's body
  std::map<NodeId, NodeId> choices_;                 // of a kSwitchN: the first on the same index
  std::set<NodeId> late_entries_;                    // arguments that may be dead in a live frame
  std::set<std::pair<RegionId, int>> dead_results_;  // by function and index: may be dead in a live frame
  std::set<RegionId> partial_loops_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_CONDITIONS_H_
