// The pass that undoes what HideCalleesPass did.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_SHOW_CALLEES_PASS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_SHOW_CALLEES_PASS_H_

#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow_recursion {

// Gives the Invokes of a graph their callees back. InvalidArgument if the attribute that kept one is malformed.
class ShowCalleesPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_SHOW_CALLEES_PASS_H_
