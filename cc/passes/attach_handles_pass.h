// The pass that gives calls back the resources that were taken from them for the time of placement.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_ATTACH_HANDLES_PASS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_ATTACH_HANDLES_PASS_H_

#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow_recursion {

// Runs AttachHandles, see cc/expand/handle_stand_ins.h.
class AttachHandlesPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_ATTACH_HANDLES_PASS_H_
