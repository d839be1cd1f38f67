// The pass that keeps XLA's clustering from following calls from body to body.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_HIDE_CALLEES_PASS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_HIDE_CALLEES_PASS_H_

#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow_recursion {

// Before a graph runs, XLA looks for reference variables in the functions that a node's attributes name, ten calls
// deep, and does not remember which it has seen: it reads k^10 bodies for a function with k call sites. So while XLA's
// passes run, the callees of Invokes are kept in an attribute that it does not follow.
class HideCalleesPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_HIDE_CALLEES_PASS_H_
