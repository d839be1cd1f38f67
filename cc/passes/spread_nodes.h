// Adds the nodes that bodies and calls on several devices need.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_SPREAD_NODES_H_
#define TENSORFLOW_RECURSION_CC_PASSES_SPREAD_NODES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "cc/analysis/call_decisions.h"
#include "cc/passes/spread_boundaries.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Puts a FrameStart of the function on every host of its body. Nodes that waited for the FrameStart of another device
// wait for the one on their own device from now on. InvalidArgument if the graph has none.
absl::Status SpreadFrameStart(const std::string& function, const BodyPorts& body, tensorflow::Graph* graph);

// Adds the nodes that tell every host of the callee whether the call lives: an AnnounceCall on the device that decides,
// or, if that device does not see all deciding arguments, nodes that gather what all devices see; and JoinCalls on the
// other hosts. A Return waits for the Calls of its own device, and for the JoinCall in place of those on others.
absl::Status SpreadCall(int64_t call_id, const CallPorts& call, const BodyPorts& callee, const CallDecisions& decisions,
                        tensorflow::Graph* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_SPREAD_NODES_H_
