// Finds the invariants of recursions: arguments that every call inside a recursion passes on as they came.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_INVARIANTS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_INVARIANTS_H_

#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// Functions that call one another in a circle, or one that calls itself, with what never changes in it. For example, in
//   even(n, w) = odd(n - 1, w)    odd(n, v) = even(n - 1, v)
// w and v are one invariant: whatever even is entered with, or odd, all frames below have.
struct InvariantRecursion {
  std::vector<RegionId> functions;
  // The calls inside the recursion and those that enter it, as positions in FlowGraph::call_sites.
  std::vector<size_t> inner_sites;
  std::vector<size_t> outer_sites;
  // For each invariant, which argument of each function it is. In the example: argument 1 of even, argument 1 of odd.
  std::vector<std::map<RegionId, int>> invariants;
};

// The recursions that have invariants, without functions of `compiled`, which do not run in frames. An argument counts
// only if nobody can tell that a call waits for it and that calls inside do not pass it: it lives wherever the call
// does, waits for no side effect, and other arguments open every call inside.
// `order` is SortNodes' answer.
std::vector<InvariantRecursion> FindInvariants(const FlowGraph& flow, const std::vector<NodeId>& order,
                                               const std::set<RegionId>& compiled);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_INVARIANTS_H_
