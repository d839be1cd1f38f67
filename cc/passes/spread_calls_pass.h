// The pass that prepares a graph whose bodies lie on several devices for being divided into partitions.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_SPREAD_CALLS_PASS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_SPREAD_CALLS_PASS_H_

#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow_recursion {

// Runs SpreadCalls on the whole graph of a step, which has been pruned and optimized by then.
class SpreadCallsPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_SPREAD_CALLS_PASS_H_
