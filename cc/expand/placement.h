// Where the arguments and outputs of functions go, so that values cross devices only where they must.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_PLACEMENT_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_PLACEMENT_H_

#include <string>

#include "absl/status/status.h"
#include "cc/expand/call_program.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// On the Invokes that a user has asked to be on a type of device.
inline constexpr char kPinnedAttr[] = "_recursion_pinned";

// The device that the node is assigned to, or asks for.
const std::string& DeviceOf(const tensorflow::Node& node);

// Whether a requested device says of what type it is to be, a CPU for instance.
bool AsksForType(const std::string& device);

// Handles, records and lists: what stays where it was made.
bool IsHandle(tensorflow::DataType type);

// Of an `_Arg` or `_Retval` node: which one it is.
int IndexOf(const tensorflow::Node& node);

// The Placer puts whoever reads a resource beside it, calls too, and fails when a call gets two of different devices.
// But a call that will be transformed only passes them on, and must not draw the recursion to where some variable is:
// from before placement until AttachHandles, stand-ins take the place of the resources that calls read. Not of those
// that return a resource: whoever reads that is put beside the call, and should be beside what it takes.
absl::Status DetachHandles(tensorflow::Graph* graph);
absl::Status AttachHandles(tensorflow::Graph* graph);

// Moves arguments to where they are read and outputs to where they are made, in bodies that have devices already.
// Handles stay: the Placer has put their readers beside them.
void AlignBoundaries(CallProgram* program);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_PLACEMENT_H_
