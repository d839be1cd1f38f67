// SPDX-License-Identifier: Apache-2.0
#include "cc/values/device_memory.h"

#include <algorithm>
#include <vector>

#include "cc/base/status.h"
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

absl::Status DeviceMemory::Verify(const tensorflow::Graph& graph) const {
  if (!is_apart_) return absl::OkStatus();
  std::vector<MemoryTypeVector> inputs(graph.num_node_ids());
  std::vector<MemoryTypeVector> outputs(graph.num_node_ids());
  for (const Node* node : graph.op_nodes()) {
    TFR_RETURN_IF_ERROR(TypesOf(*node, &inputs[node->id()], &outputs[node->id()]));
  }
  for (const tensorflow::Edge* edge : graph.edges()) {
    if (edge->IsControlEdge()) continue;
    const tensorflow::MemoryType from = outputs[edge->src()->id()][edge->src_output()];
    const tensorflow::MemoryType to = inputs[edge->dst()->id()][edge->dst_input()];
    if (from == to) continue;
    return InvalidArgument("Node '", edge->dst()->name(), "' reads input ", edge->dst_input(), " in ",
                           to == HOST_MEMORY ? "the host's" : "the device's", " memory, where '", edge->src()->name(),
                           "' does not put it");
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
