// The pass that decides which function a call runs that was not transformed.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_RESOLVE_CALLS_PASS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_RESOLVE_CALLS_PASS_H_

#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow_recursion {

// Runs ResolveCalls, see cc/expand/resolve_calls.h. A call that runs another function than the plain one gets another
// name, because sessions keep kernels by name, and other fetches may run the plain function.
class ResolveCallsPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_RESOLVE_CALLS_PASS_H_
