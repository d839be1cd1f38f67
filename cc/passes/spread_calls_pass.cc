// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/spread_calls_pass.h"

#include "cc/expand/branch_inputs.h"
#include "cc/passes/spread_calls.h"

namespace tensorflow_recursion {

absl::Status SpreadCallsPass::Run(const tensorflow::GraphOptimizationPassOptions& options) {
  if (options.graph == nullptr) return absl::OkStatus();
  if (options.is_function_graph) return RemoveBranchInputs(options.graph->get());
  return SpreadCalls(options.graph->get());
}

}  // namespace tensorflow_recursion
