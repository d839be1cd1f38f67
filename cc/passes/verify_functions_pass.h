// The pass that keeps malformed functions away from the parts of TensorFlow that would crash.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_VERIFY_FUNCTIONS_PASS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_VERIFY_FUNCTIONS_PASS_H_

#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow_recursion {

// Verifies the functions of a graph with calls, also if the switch is off: TensorFlow's lowering pass and its
// optimizers would end the process. Also refuses an imported transformed graph whose calls have left their loops.
class VerifyFunctionsPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_VERIFY_FUNCTIONS_PASS_H_
