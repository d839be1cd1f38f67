// Answers questions about where a node is placed, and what has to stay where it is.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_PLACEMENT_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_PLACEMENT_H_

#include <string>

#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// The device that the node is assigned to, or asks for.
const std::string& DeviceOf(const tensorflow::Node& node);

// Whether a requested device names a type, such as CPU.
bool AsksForType(const std::string& device);

// Whether values of this type stay where they were made: handles, records and lists.
bool IsHandle(tensorflow::DataType type);

// The number of the argument or result that an `_Arg` or `_Retval` node stands for.
int IndexOf(const tensorflow::Node& node);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_PLACEMENT_H_
