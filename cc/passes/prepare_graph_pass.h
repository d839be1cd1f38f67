// Makes a session's whole graph ready for the optimizer, which sees it only pruned, and only if it is large enough.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_PREPARE_GRAPH_PASS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_PREPARE_GRAPH_PASS_H_

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow_recursion {

// Prepares a main graph with calls, in a session with the switch on: reports faulty options (unlike an optimizer's, a
// pass's errors reach the user), marks names that bodies cannot have, keeps control edges that Grappler may not take
// out, and adds NoOps to a graph so small that Grappler would skip it. Any other graph stays as it is.
absl::Status PrepareGraph(const tensorflow::ConfigProto& config, tensorflow::Graph* graph);

// Reports devices that bodies ask for and that are not there: for a graph with calls of a session, with the switch or
// without, and of a tf.function, in which TensorFlow's Placer never sees the bodies. For a session's graph it also runs
// PrepareGraph, and DetachHandles where there is more than one device; calls of a tf.function are told whether its
// placement is soft.
class PrepareGraphPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_PREPARE_GRAPH_PASS_H_
