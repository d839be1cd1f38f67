// Prepares a graph whose bodies lie on several devices for being divided into partitions.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_SPREAD_CALLS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_SPREAD_CALLS_H_

#include "absl/status/status.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// After this every partition of `graph`, a transformed one with assigned devices, can run its part of every frame on
// its own:
// - Each device that holds a part of a body has a FrameStart of it, and of every function that calls it.
// - One device decides whether a call lives, the one with most of the arguments that wait for no side effect. Its
//   `AnnounceCall` tells the `JoinCall` of the same call on every other device that has a part in the callee. If
//   arguments elsewhere may live when its own are dead, each device with deciding arguments says whether one of them
//   lives, and a Merge of what they say tells all devices.
// - Every node says in the attribute `_recursion_body` what it is part of, and the nodes of partial loops are marked.
// - Nodes that wait for all side effects of a body wait for each of them directly (restore_waits.h).
// - BranchInputs are gone (cc/expand/branch_inputs.h).
// - The nodes that only kept others from being pruned are gone, and so are control edges from one device to another
//   that JoinCall implies.
//
// If all bodies and structural nodes are on one device, the graph only gets the direct waits and these attributes.
// InvalidArgument if the graph is malformed.
absl::Status SpreadCalls(tensorflow::Graph* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_SPREAD_CALLS_H_
