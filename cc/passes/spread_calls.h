// Prepares a graph whose functions' bodies lie on several devices for being partitioned.
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
//   `AnnounceCall` tells the `JoinCall` of the same call on every other device that has a part in the callee. Where
//   arguments elsewhere may live when its own are dead, every device says whether any of its arguments lives, and a
//   Merge of that tells them all.
// - Every node says in the attribute `_recursion_body` what it is part of.
// - What waits for all side effects of a body waits for each of them (restore_waits.h).
// - What only kept nodes from being pruned is gone: the KeepAlives, and control edges from one device to another that
//   JoinCall implies.
// Only the waits and the attribute are added to a graph whose bodies and KeepAlives are on one device, tokens in loops
// included. InvalidArgument if the graph is malformed.
absl::Status SpreadCalls(tensorflow::Graph* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_SPREAD_CALLS_H_
