// Transforms the calls that Grappler has left in a session's graph, and tells of those that stay.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_EXPAND_LEFT_CALLS_PASS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_EXPAND_LEFT_CALLS_PASS_H_

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow_recursion {

// Runs on the graph of a step that is about to be partitioned. With the switch on, calls that are in it still are
// transformed as the optimizer would have done; only the stock optimizers do not see the result. A call that runs
// dynamically in spite of that is a notice, once a session for each function, or FailedPrecondition with the same text
// (option on_fallback). Without the switch, one notice a session says that there is one.
class ExpandLeftCallsPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_EXPAND_LEFT_CALLS_PASS_H_
