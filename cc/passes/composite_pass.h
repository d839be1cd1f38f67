// The pass that hands partitions with calls over to our executor.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_COMPOSITE_PASS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_COMPOSITE_PASS_H_

#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow_recursion {

// Turns each partition with parts of bodies into one node, Recursion>Run, whose kernel is our executor. Stock executors
// cannot follow the implicit edges from Call to Entry and from Result to Return, and the gRPC worker offers no choice
// of executor; but every executor runs nodes. A function's graph with calls that are made static where they run becomes
// one node, too, whose kernel transforms all of it at once. Also undoes what ShieldBodiesPass did.
class CompositePass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_COMPOSITE_PASS_H_
