// Keeps the invariants of recursions once for all frames.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_KEEP_INVARIANTS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_KEEP_INVARIANTS_H_

#include <set>

#include "absl/status/status.h"
#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// Afterwards calls inside a recursion no longer pass its invariants: operators read an invariant as they read a
// constant, without waiting for it. For example, take
//   F(n, w) = base if n < 1 else F(n - 1, w) * w
// The call inside passes only n, and the product waits only for the call's result. Some nodes take nothing but tokens
// (merges, results, loops, calls of other functions): these still get the invariant from its entry, in every frame.
//
// The invariants become the last arguments of their functions. `flow` is as DropSuperfluousWaits() leaves it, and is
// so afterwards. Functions of `compiled` stay as they are.
absl::Status KeepInvariants(const std::set<RegionId>& compiled, FlowGraph* flow);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_KEEP_INVARIANTS_H_
