// Prepares a graph whose bodies lie on several devices for being partitioned.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_SPREAD_CALLS_PASS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_SPREAD_CALLS_PASS_H_

#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow_recursion {

// Runs SpreadCalls on a graph as a whole, which has been pruned and rewritten by then.
class SpreadCallsPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_SPREAD_CALLS_PASS_H_
