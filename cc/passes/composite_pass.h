// Hands the partitions that hold calls over to our executor.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_COMPOSITE_PASS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_COMPOSITE_PASS_H_

#include "tensorflow/core/common_runtime/optimization_registry.h"

namespace tensorflow_recursion {

// Makes each such partition one node. Stock executors cannot follow the implicit edges Call -> Entry and
// Result -> Return, and the gRPC worker offers no choice of executor; but every executor runs a node. So ours is a
// node. Undoes what ShieldBodiesPass did. A function's graph with calls that are to be made static where they run is
// one node as well: its kernel transforms all of it at once.
class CompositePass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_COMPOSITE_PASS_H_
