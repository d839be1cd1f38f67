// Keeps the invariants of recursions once for all frames.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_KEEP_INVARIANTS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_KEEP_INVARIANTS_H_

#include <set>

#include "absl/status/status.h"
#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// Calls inside a recursion pass its invariants no more, and operators read them as they read constants: nobody sends
// them. For example,
//   F(n, w) = base if n < 1 else F(n - 1, w) * w
// becomes a function of n alone inside, and the product waits for the call's result alone. What takes only tokens (a
// merge, a result, a loop, a call of another function) still gets the invariant from its entry, in every frame.
//
// The invariants become the last arguments of their functions. `flow` is as DropSuperfluousWaits() leaves it, and is
// so afterwards. Functions of `compiled` stay as they are.
absl::Status KeepInvariants(const std::set<RegionId>& compiled, FlowGraph* flow);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_KEEP_INVARIANTS_H_
