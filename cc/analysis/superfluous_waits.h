// Takes out of a flow graph what an operator need not wait for.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_SUPERFLUOUS_WAITS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_SUPERFLUOUS_WAITS_H_

#include "absl/status/status.h"
#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// If the other inputs of a node imply the condition of an input, waiting for that input adds nothing. So a control edge
// from it is dropped, and a constant need not wait for it, unless the wait orders side effects. For example, lowering
// puts a control edge from the true side of a branch on every node of that side; a node that also reads a value of that
// side does not need it.
//
// This drops superfluous control inputs and guards, turns the guards that are left into control inputs, and takes out
// nodes that then only hand a value or a signal on. InvalidArgument if the nodes form a cycle.
absl::Status DropSuperfluousWaits(FlowGraph* flow);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_SUPERFLUOUS_WAITS_H_
