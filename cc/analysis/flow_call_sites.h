// Gathers the nodes of each call into one call site, and checks that they fit the callee's body.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_CALL_SITES_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_CALL_SITES_H_

#include "absl/status/status.h"
#include "cc/analysis/flow_builder.h"

namespace tensorflow_recursion {

// Groups Calls, Returns and what goes with them by call_id; each group gets a flow node.
absl::Status CollectCallSites(FlowBuilder* builder);

// Checks arguments and results against the callee's, and numbers the ports. To be called when the nodes of all bodies
// have been made.
absl::Status FinishCallSites(FlowGraph* flow);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_CALL_SITES_H_
