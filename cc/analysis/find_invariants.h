// Finds the invariants of recursions: arguments that every call inside a recursion passes on as they came.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_FIND_INVARIANTS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_FIND_INVARIANTS_H_

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// Functions that call one another in a circle, or one that calls itself, and what never changes in their calls.
// Example:
//   even(n, w) = odd(n - 1, w)    odd(n, v) = even(n - 1, v)
// Here w and v are one invariant: all frames have the value that the recursion was entered with.
struct InvariantRecursion {
  std::vector<RegionId> functions;
  // The calls inside the recursion and those that enter it, as positions in FlowGraph::call_sites.
  std::vector<size_t> inner_sites;
  std::vector<size_t> outer_sites;
  // For each invariant, which argument of each function it is. In the example: argument 1 of even, argument 1 of odd.
  std::vector<std::map<RegionId, int>> invariants;
};

// Finds the recursions that have invariants. Functions of `compiled` have none, because they do not run in frames. An
// argument counts only if the results and side effects of a program cannot show whether it is passed or kept: it lives
// wherever the call does, waits for no side effect, and every call inside is opened by other arguments.
// `order` is the result of SortNodes.
std::vector<InvariantRecursion> FindInvariants(const FlowGraph& flow, const std::vector<NodeId>& order,
                                               const std::set<RegionId>& compiled);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_FIND_INVARIANTS_H_
