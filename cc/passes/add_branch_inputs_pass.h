// The pass that keeps what a branch says of shapes in the branch.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_ADD_BRANCH_INPUTS_PASS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_ADD_BRANCH_INPUTS_PASS_H_

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow_recursion {

// Adds BranchInputs to every graph with calls, a session's or a tf.function's (cc/expand/branch_inputs.h). The branches
// are the user's; those of bodies get theirs when the bodies come into the graph. SpreadCallsPass takes them out.
class AddBranchInputsPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_ADD_BRANCH_INPUTS_PASS_H_
