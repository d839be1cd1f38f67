// Keeps calls from being placed beside the resources that they only pass on.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_HANDLE_STAND_INS_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_HANDLE_STAND_INS_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// TensorFlow's Placer puts every operator that reads a resource beside it, calls too, and fails when a call gets two
// resources of different devices. But a call that will be transformed only passes them on, and must not draw the
// recursion to where some variable is. So a stand-in takes the place of each resource that a call or a Retain reads,
// from before placement until AttachHandles. Calls that return a resource get none: an operator that reads the result
// is put beside the call, and should be beside the resources that the call takes.
absl::Status DetachHandles(tensorflow::Graph* graph);

// The device of the resource whose handle the end of an edge reads; empty if that is not known.
using DeviceOfHandle = std::function<std::string(const tensorflow::Edge& edge)>;

// A Recall is where the record is, but the handles in the record may be of resources elsewhere. So that their readers
// are placed beside the resources, a stand-in on that device takes the place of each handle, until AttachHandles.
absl::Status DetachRecalledHandles(const DeviceOfHandle& device_of, tensorflow::Graph* graph);

// A branch or a loop may choose between resources of several devices, while the Placer wants one device for all. If all
// are on processors of one process, stand-ins on the device of the first take their place until AttachHandles. Kernels
// then use the device that the handle names, see cc/kernels/stock_kernel_runner.h.
absl::Status DetachChosenHandles(const DeviceOfHandle& device_of, tensorflow::Graph* graph);

// Puts the resources back into the place of all stand-ins.
absl::Status AttachHandles(tensorflow::Graph* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_HANDLE_STAND_INS_H_
