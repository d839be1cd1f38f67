// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/attach_handles_pass.h"

#include "cc/expand/handle_stand_ins.h"

namespace tensorflow_recursion {

absl::Status AttachHandlesPass::Run(const tensorflow::GraphOptimizationPassOptions& options) {
  return options.graph == nullptr ? absl::OkStatus() : AttachHandles(options.graph->get());
}

}  // namespace tensorflow_recursion
