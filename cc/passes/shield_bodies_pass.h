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
// has no other effect: placement is over, and only assigned devices count. Nodes around the bodies may be rewritten,
// and those of bodies that nothing but oneDNN has a kernel for.
class ShieldBodiesPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

// Whether TensorFlow's optimizer made the operator, by fusing others, for the pass that rewrites it for oneDNN: a
// depthwise convolution with its BiasAdd, for example. On a CPU that has a kernel in name only, NoOp's, which computes
// no output.
bool IsForOneDnnAlone(const tensorflow::Node& node);

// Lets the nodes of a partition request its device again, which undoes the pass.
void RemoveShields(const std::string& device, tensorflow::Graph* partition);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_SHIELD_BODIES_PASS_H_
