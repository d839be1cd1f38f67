// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/resolve_calls_pass.h"

#include "cc/expand/resolve_calls.h"

namespace tensorflow_recursion {

absl::Status ResolveCallsPass::Run(const tensorflow::GraphOptimizationPassOptions& options) {
  return options.graph == nullptr ? absl::OkStatus() : ResolveCalls("/forward", options.graph->get());
}

}  // namespace tensorflow_recursion
