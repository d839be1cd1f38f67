// Joins conditions: the one that holds if any of several does.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_ANY_CONDITION_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_ANY_CONDITION_H_

#include <optional>
#include <set>

#include "cc/analysis/condition.h"
#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// Puts what holds on all sides of a branch in the place of what holds on each side: {q, p is true} and {q, p is false}
// become {q}. Returns whether there was such a branch; if so, there may be another.
bool JoinSides(const FlowGraph& flow, std::set<Condition>* conditions);

// The condition that any of `conditions` holds; nullopt if no set of events says so.
std::optional<Condition> AnyOf(const FlowGraph& flow, std::set<Condition> conditions);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_ANY_CONDITION_H_
