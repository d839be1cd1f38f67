// Keeps TensorFlow's own passes over partitions off function bodies.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_SHIELD_BODIES_PASS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_SHIELD_BODIES_PASS_H_

#include <string>

#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Bodies compute small tensors many times, where an operator that was rewritten for oneDNN costs several times the
// plain one. So their nodes request a device that no stock pass takes for a CPU; placement is over, and the assigned
// devices count. The graph around the bodies is left to be rewritten.
class ShieldBodiesPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

// Lets the nodes of a partition request its device again.
void RemoveShields(const std::string& device, tensorflow::Graph* partition);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_SHIELD_BODIES_PASS_H_
