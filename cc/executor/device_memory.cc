// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/device_memory.h"

#include <algorithm>

#include "tensorflow/core/framework/memory_types.h"
#include "tensorflow/core/framework/op.h"

namespace tensorflow_recursion {

using tensorflow::HOST_MEMORY;
using tensorflow::MemoryTypeVector;
using tensorflow::Node;

absl::Status DeviceMemory::TypesOf(const Node& node, MemoryTypeVector* inputs, MemoryTypeVector* outputs) const {
  return tensorflow::MemoryTypesForNode(tensorflow::OpRegistry::Global(), device_, node.def(), inputs, outputs);
}

bool DeviceMemory::IsOnHost(const Node& node, int output) const {
  if (!is_apart_) return true;
  MemoryTypeVector inputs, outputs;
  return TypesOf(node, &inputs, &outputs).ok() && outputs[output] == HOST_MEMORY;
}

bool DeviceMemory::IsOnHost(const Node& node) const {
  if (!is_apart_) return true;
  MemoryTypeVector inputs, outputs;
  const auto is_on_host = [](tensorflow::MemoryType type) { return type == HOST_MEMORY; };
  return TypesOf(node, &inputs, &outputs).ok() && std::all_of(inputs.begin(), inputs.end(), is_on_host) &&
         std::all_of(outputs.begin(), outputs.end(), is_on_host);
}

}  // namespace tensorflow_recursion
