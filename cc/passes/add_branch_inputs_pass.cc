// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/add_branch_inputs_pass.h"

#include "cc/expand/branch_inputs.h"
#include "cc/expand/call_nodes.h"

namespace tensorflow_recursion {

absl::Status AddBranchInputsPass::Run(const tensorflow::GraphOptimizationPassOptions& options) {
  if (options.graph == nullptr || FindInvokes(**options.graph).empty()) return absl::OkStatus();
  return AddBranchInputs(options.graph->get());
}

}  // namespace tensorflow_recursion
