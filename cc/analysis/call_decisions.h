// Finds which arguments of each call decide whether it lives, and which loops run with some of their variables dead.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_CALL_DECISIONS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_CALL_DECISIONS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "cc/analysis/condition.h"
#include "cc/analysis/conditions.h"
#include "cc/analysis/flow_graph.h"
#include "cc/analysis/regions.h"

namespace tensorflow_recursion {

// Knows which arguments decide whether a call lives: any of them does, except for constants that go along with the
// others (DropSuperfluousWaits finds these). SpreadCalls makes it for a graph that lies on several devices, each of
// which sees only a part of the arguments.
class CallDecisions {
 public:
  // `flow` is the flow graph of a whole graph; it is taken over, because waits are dropped from it. If it is not a
  // valid program, nothing is known of its calls afterwards: the fault is reported where the graph is made a program.
  void Find(FlowGraph flow);

  // Whether some variables of the loop of `region` may live while others are dead.
  bool IsPartial(RegionId region) const { return partial_loops_.count(region) > 0; }

  // The arguments of which at least one has to live for the call to live. For a call that is known.
  const std::set<int>& DecidingArguments(int64_t call_id) const;

  // Whether the call lives exactly if any of `arguments` does. True if nothing is known of the call.
  bool IsDecidedBy(int64_t call_id, const std::set<int>& arguments) const;

 private:
  // What is known of the arguments of one call, by their numbers.
  struct Call {
    std::set<int> deciding;
    std::set<int> constants;
    // The arguments that live whenever the call does, and those that live only when it does. For example, if y of F(x,
    // y) may be dead while x lives, x is in both sets, and y only in the second.
    std::set<int> always;
    std::set<int> only;
    std::map<int, Condition> arguments;
  };

  absl::Status Analyze(FlowGraph* flow);
  void CollectArguments(const FlowGraph& flow, const Conditions& conditions);
  void FindDeciding(const FlowGraph& flow, const Conditions& conditions);

  std::map<int64_t, Call> calls_;  // by call_id
  std::set<RegionId> partial_loops_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_CALL_DECISIONS_H_
