// Joins conditions: the one that holds if any of several does.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_ANY_CONDITION_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_ANY_CONDITION_H_

#include <optional>
#include <set>

#include "cc/analysis/condition.h"
#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// Finds conditions that differ only in the side of one branch, one condition for each side, and replaces them by what
// they have in common: {q, p is true} and {q, p is false} become {q}. Does that for one branch. Returns false if there
// are no such conditions.
bool JoinSides(const FlowGraph& flow, std::set<Condition>* conditions);

// The condition that at least one of `conditions` holds; nullopt if no set of events says just that.
std::optional<Condition> AnyOf(const FlowGraph& flow, std::set<Condition> conditions);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_ANY_CONDITION_H_
