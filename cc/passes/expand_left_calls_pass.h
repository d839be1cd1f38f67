// The pass that transforms the calls that Grappler has left in a session's graph, and tells the user of those that
// stay.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_EXPAND_LEFT_CALLS_PASS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_EXPAND_LEFT_CALLS_PASS_H_

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow_recursion {

// Runs on the graph of a step before it is partitioned. With the switch on, it transforms calls that are still in the
// graph as the optimizer would have done, only that the stock optimizers do not see the result. If a call runs
// dynamically even so, the user gets a notice, once a session for each function, or FailedPrecondition with the same
// text (option on_fallback). With the switch off, one notice a session says that there is a switch.
class ExpandLeftCallsPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_EXPAND_LEFT_CALLS_PASS_H_
