// The pass that makes a session's whole graph ready for the optimizer, which sees the graph only when it has been
// pruned, and only if it is large enough.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_PREPARE_GRAPH_PASS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_PREPARE_GRAPH_PASS_H_

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/protobuf/config.pb.h"

namespace tensorflow_recursion {

// Prepares a main graph with calls, in a session with the switch on. Any other graph stays as it is. `library` has the
// functions, because a session keeps them apart from the graph.
// - It reports faulty options: the errors of a pass reach the user, those of an optimizer do not.
// - It notes which names bodies cannot have, and which calls the user has pinned to a device.
// - It lets calls whose records are handed on name their forward functions, so that Grappler keeps these.
// - It keeps control edges that Grappler must not take out (cc/expand/keep_waits.h).
// - It adds NoOps to a graph so small that Grappler would skip it.
absl::Status PrepareGraph(const tensorflow::ConfigProto& config, const tensorflow::FunctionLibraryDefinition& library,
                          tensorflow::Graph* graph);

// Reports devices that bodies ask for and that are not there, because TensorFlow's Placer does not see the bodies. It
// does so for the graphs with calls of sessions, with the switch on or off, and of tf.functions. For a session's graph
// it also runs PrepareGraph, and, if there are several devices and the switch is on, DetachHandles. Calls in a
// tf.function are marked with whether its placement is soft.
class PrepareGraphPass : public tensorflow::GraphOptimizationPass {
 public:
  absl::Status Run(const tensorflow::GraphOptimizationPassOptions& options) override;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_PREPARE_GRAPH_PASS_H_
