// The pass that keeps TensorFlow's own passes over partitions from rewriting function bodies.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_SHIELD_BODIES_PASS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_SHIELD_BODIES_PASS_H_

#include <string>

#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Bodies compute small tensors many times, for which an operator that was rewritten for oneDNN takes several times as
// long as the plain one. So the nodes of bodies are made to request a device that no stock pass takes for a CPU. That
// has no other effect: placement is over, and only assigned devices count. Nodes around the bodies may be rewritten.
class ShieldBodiesPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

// Lets the nodes of a partition request its device again, which undoes the pass.
void RemoveShields(const std::string& device, tensorflow::Graph* partition);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_SHIELD_BODIES_PASS_H_
