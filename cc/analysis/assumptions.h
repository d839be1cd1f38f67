// Assumes that values of a graph live together, until something in the graph says otherwise.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_ASSUMPTIONS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_ASSUMPTIONS_H_

#include <set>
#include <utility>

#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

class Conditions;

// It is assumed that all arguments of a call live if the call does, all results of a call if its arguments do, and all
// variables of a loop together. These are the exceptions, which Conditions::Find gathers.
struct Assumptions {
  // Entries of arguments that may be dead in a live frame.
  std::set<NodeId> late_entries;
  // Results that may be dead in a live frame, by function and index.
  std::set<std::pair<RegionId, int>> dead_results;
  // Loops of which some variables may live while others are dead, by the region of their body.
  std::set<RegionId> partial_loops;
};

// Adds the exceptions that follow from `conditions`, which were computed under `assumptions`. Returns whether there
// were any: then the conditions have to be computed anew.
bool GiveUpContradicted(const FlowGraph& flow, const Conditions& conditions, Assumptions* assumptions);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_ASSUMPTIONS_H_
