// Finds under which condition each value of a graph is live, through conditionals, loops and calls.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_CONDITIONS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_CONDITIONS_H_

#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "cc/analysis/assumptions.h"
#include "cc/analysis/condition.h"
#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// The conditions of a graph's values. Two values with the same condition live and die together; of other pairs nothing
// is known.
//
// Unlike FrameConditions, which looks at each frame by itself, this finds that the values of ordinary programs live
// together: what both branches of a conditional make lives if what goes into it does, the arguments of a call if the
// call does, its results if its arguments do, a loop's exits if its variables do. Some of that is assumed until
// something in the graph says otherwise (assumptions.h): Find computes all conditions, gives up the assumptions that
// they contradict, and starts anew without these.
class Conditions {
 public:
  // `flow` must outlive it, and must not have been changed by DropSuperfluousWaits before Find.
  explicit Conditions(const FlowGraph& flow) : flow_(flow) {}

  // InvalidArgument if the nodes form a cycle.
  absl::Status Find();

  // These say under which condition a node fires, a value comes from a source, or an input is live.
  const Condition& Of(NodeId node) const { return conditions_[node]; }
  Condition Of(const Source& source) const;
  Condition Of(const Input& input) const;

  // Whether the loop of `region` is partial: some of its variables may live while others are dead, or leave the loop
  // while others go on.
  bool IsPartial(RegionId region) const { return assumptions_.partial_loops.count(region) > 0; }

  // The condition that at least one of `conditions` holds; nullopt if no set of events says just that.
  std::optional<Condition> AnyOf(const std::vector<Condition>& conditions) const;

 private:
  void FindChoices();
  void Compute(NodeId node);
  Condition OfAll(const FlowNode& node) const;
  Condition OfMerge(NodeId node) const;
  Condition OfSite(NodeId node) const;
  Condition OfStart(NodeId node) const;
  Condition OfEntry(NodeId node) const;

  const FlowGraph& flow_;
  std::vector<NodeId> order_;
  // Under which condition each node fires; its ports may yield values under stronger ones.
  IdVector<NodeId, Condition> conditions_;
  // The kSwitchNs of a region that read one index all take the same side. Events name the first of them for all.
  std::map<NodeId, NodeId> choices_;
  Assumptions assumptions_;
};

// The condition that all variables of a loop live.
Condition ConditionOfVariables(const FlowLoop& loop);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_CONDITIONS_H_
