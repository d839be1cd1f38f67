// Tells each flow node where its inputs come from.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_LINKS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_LINKS_H_

#include "absl/status/status.h"
#include "cc/analysis/flow_builder.h"

namespace tensorflow_recursion {

// Fills in the inputs and controls of all nodes, which must have been made. Adds the nodes that no node of the graph
// stands for: branches, constants that are sent as tokens, and those that hold a value back until control inputs have
// come.
absl::Status LinkNodes(FlowBuilder* builder);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_LINKS_H_
