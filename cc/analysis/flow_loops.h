// Gathers the nodes of each loop, and makes the flow nodes that start its iterations and hand its variables to them.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_LOOPS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_LOOPS_H_

#include "absl/status/status.h"
#include "cc/analysis/flow_builder.h"

namespace tensorflow_recursion {

// Fills FlowGraph::loops with the nodes that each loop consists of.
absl::Status CollectLoops(FlowBuilder* builder);

// Adds the start, the end of an iteration and the entries of each loop.
void MakeLoopNodes(FlowGraph* flow);

// Finds the loops that exchange values with other devices, themselves or in a loop inside. Such a loop takes part in
// every iteration that the other devices begin, and in the first one even if the loop is in a branch that was not
// taken.
void FindCrossings(FlowGraph* flow);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_LOOPS_H_
