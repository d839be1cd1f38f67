// What is added to a graph for bodies and calls that are on several devices.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_SPREAD_NODES_H_
#define TENSORFLOW_RECURSION_CC_PASSES_SPREAD_NODES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "cc/analysis/call_decision.h"
#include "cc/passes/spread_boundaries.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Puts a FrameStart of the function on every host of its body. Nodes that waited for the FrameStart of another device
// wait for the one on their own device from now on. InvalidArgument if the graph has none.
absl::Status SpreadFrameStart(const std::string& function, const BodyPorts& body, tensorflow::Graph* graph);

// Lets every host of the callee know whether the call lives: an AnnounceCall on the device that decides, and a JoinCall
// on the others. A Return waits for the Calls of its own device; the JoinCall stands for the others.
absl::Status SpreadCall(int64_t call_id, const CallPorts& call, const BodyPorts& callee, const CallLives& lives,
                        tensorflow::Graph* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_SPREAD_NODES_H_
