// Keeps calls from being placed beside the resources that they only pass on.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_HANDLE_STAND_INS_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_HANDLE_STAND_INS_H_

#include "absl/status/status.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// TensorFlow's Placer puts whoever reads a resource beside it, calls too, and fails when a call gets two resources of
// different devices. But a call that will be transformed only passes them on, and must not draw the recursion to where
// some variable is. So a stand-in takes the place of each resource that a call reads, from before placement until
// AttachHandles. A call that returns a resource keeps what it reads: whoever reads the result is put beside the call,
// and should be beside what the call takes.
absl::Status DetachHandles(tensorflow::Graph* graph);
absl::Status AttachHandles(tensorflow::Graph* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_HANDLE_STAND_INS_H_
