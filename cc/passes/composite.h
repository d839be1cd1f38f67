// Turns each partition graph that holds calls into one Recursion>Run node between its _Args and _Retvals.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_COMPOSITE_H_
#define TENSORFLOW_RECURSION_CC_PASSES_COMPOSITE_H_

#include <memory>
#include <string>

#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow_recursion {

// Stock executors can't follow the implicit edges Call -> Entry and Result -> Return, and the gRPC
// worker offers no choice of executor; but every executor runs a node. So ours is a node.
class CompositePass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

// Comes before TensorFlow's own passes over partitions and keeps them off function bodies; CompositePass
// undoes what it did. Bodies compute small tensors many times, where an operator rewritten for oneDNN
// costs several times the plain one; the graph around them is left to be rewritten.
class ShieldBodiesPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

// Replaces *graph. `name` must be unique in the process: sessions cache the node's kernel under it.
absl::Status MakeComposite(const std::string& device, const std::string& name,
                           std::unique_ptr<tensorflow::Graph>* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_COMPOSITE_H_
