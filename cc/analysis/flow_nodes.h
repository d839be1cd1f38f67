// Makes the flow nodes of the graph's nodes, one for each that will be an operator.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_NODES_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_NODES_H_

#include "absl/status/status.h"
#include "cc/analysis/flow_builder.h"

namespace tensorflow_recursion {

// Makes the nodes and sets what each of them does. Call sites and loops must have been collected. LinkNodes fills in
// the sources afterwards.
absl::Status MakeNodes(FlowBuilder* builder);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_NODES_H_
