// Finds the while loops that calls of the main graph stand in.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_LOOP_FRAMES_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_LOOP_FRAMES_H_

#include "absl/status/status.h"
#include "cc/expand/call_program.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Fills in `frames` and `frame_of` of `program`, for calls of `main` that stand in while loops. Connects nodes of
// `main` that have no inputs or outputs with its source and sink. InvalidArgument if the loops are malformed.
absl::Status FindLoopFrames(tensorflow::Graph* main, CallProgram* program);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_LOOP_FRAMES_H_
