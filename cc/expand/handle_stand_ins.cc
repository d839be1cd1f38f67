// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/handle_stand_ins.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/expand/call_nodes.h"
#include "cc/expand/colocation.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/tensor_id.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Edge;
using tensorflow::Node;

// Lets `stand_in` take the place of the value that the edge carries. It is made if there is none yet.
absl::Status StandIn(const Edge* edge, Node** stand_in, tensorflow::Graph* graph) {
  Node* const reader = edge->dst();
  const int input = edge->dst_input();
  if (*stand_in == nullptr) {
    tensorflow::NodeDef def;
    def.set_op("Placeholder");
    def.set_name(graph->NewName(kHandleNodeName));
    tensorflow::AddNodeAttr("dtype", tensorflow::DT_RESOURCE, &def);
    tensorflow::AddNodeAttr(kHandleAttr, absl::StrCat(edge->src()->name(), ":", edge->src_output()), &def);
    absl::Status status;
    *stand_in = graph->AddNode(std::move(def), &status);
    TFR_RETURN_IF_ERROR(status);
    graph->AddControlEdge(edge->src(), *stand_in);
  }
  graph->RemoveEdge(edge);
  graph->AddEdge(*stand_in, 0, reader, input);
  return absl::OkStatus();
}

bool CarriesHandle(const Edge& edge) {
  return !edge.IsControlEdge() && edge.src()->output_type(edge.src_output()) == tensorflow::DT_RESOURCE;
}

// The devices of the resources that `merge` chooses from, by input; empty if all are one, or if they are not processors
// of one process.
std::vector<std::string> DevicesChosenFrom(const DeviceOfHandle& device_of, const Node& merge) {
  using tensorflow::DeviceNameUtils;
  std::vector<std::string> devices(merge.num_inputs());
  DeviceNameUtils::ParsedName first, other;
  bool is_choice = false;
  for (const Edge* edge : merge.in_edges()) {
    if (edge->IsControlEdge()) continue;
    const std::string device = device_of(*edge);
    if (!DeviceNameUtils::ParseFullName(device, &other) || other.type != tensorflow::DEVICE_CPU) return {};
    if (!first.has_type) first = other;
    if (!DeviceNameUtils::IsSameAddressSpace(first, other)) return {};
    is_choice = is_choice || first.id != other.id;
    devices[edge->dst_input()] = device;
  }
  return is_choice ? devices : std::vector<std::string>();
}

}  // namespace

absl::Status DetachHandles(tensorflow::Graph* graph) {
  std::vector<Node*> passing;
  for (Node* node : graph->op_nodes()) {
    const auto& outputs = node->output_types();
    const bool returns_handles = std::count(outputs.begin(), outputs.end(), tensorflow::DT_RESOURCE) > 0;
    if ((IsInvoke(node->def()) && !returns_handles) || IsRetain(node->def())) passing.push_back(node);
  }
  for (Node* node : passing) {
    const std::vector<const Edge*> edges(node->in_edges().begin(), node->in_edges().end());
    for (const Edge* edge : edges) {
      Node* stand_in = nullptr;
      if (CarriesHandle(*edge)) TFR_RETURN_IF_ERROR(StandIn(edge, &stand_in, graph));
    }
  }
  return absl::OkStatus();
}

absl::Status DetachRecalledHandles(const DeviceOfHandle& device_of, tensorflow::Graph* graph) {
  std::vector<const Edge*> edges;
  for (const Node* node : graph->op_nodes()) {
    if (!IsRecall(node->def())) continue;
    std::copy_if(node->out_edges().begin(), node->out_edges().end(), std::back_inserter(edges),
                 [](const Edge* edge) { return CarriesHandle(*edge); });
  }
  std::map<std::pair<const Node*, int>, Node*> stand_ins;
  for (const Edge* edge : edges) {
    const std::string device = device_of(*edge);
    if (device.empty()) continue;
    Node*& stand_in = stand_ins[{edge->src(), edge->src_output()}];
    // Lowering colocates an operator that hands a value into a branch with the one that makes the value.
    PartFrom([recall = edge->src()->name()](const std::string& name) { return name == recall; }, edge->dst());
    TFR_RETURN_IF_ERROR(StandIn(edge, &stand_in, graph));
    stand_in->set_assigned_device_name(device);
  }
  return absl::OkStatus();
}

absl::Status DetachChosenHandles(const DeviceOfHandle& device_of, tensorflow::Graph* graph) {
  std::vector<std::pair<Node*, std::string>> choices;
  for (Node* node : graph->op_nodes()) {
    if (!node->IsMerge() || node->output_type(0) != tensorflow::DT_RESOURCE) continue;
    const std::vector<std::string> devices = DevicesChosenFrom(device_of, *node);
    if (!devices.empty()) choices.emplace_back(node, devices.front());
  }
  for (const auto& [merge, device] : choices) {
    const std::vector<const Edge*> edges(merge->in_edges().begin(), merge->in_edges().end());
    for (const Edge* edge : edges) {
      if (edge->IsControlEdge()) continue;
      Node* stand_in = nullptr;
      TFR_RETURN_IF_ERROR(StandIn(edge, &stand_in, graph));
      stand_in->set_assigned_device_name(device);
    }
  }
  return absl::OkStatus();
}

absl::Status AttachHandles(tensorflow::Graph* graph) {
  std::vector<Node*> stand_ins;
  std::unordered_map<std::string, Node*> nodes;
  for (Node* node : graph->op_nodes()) {
    nodes[node->name()] = node;
    if (node->attrs().Find(kHandleAttr) != nullptr) stand_ins.push_back(node);
  }
  for (Node* stand_in : stand_ins) {
    std::string handle;
    TFR_RETURN_IF_ERROR(tensorflow::GetNodeAttr(stand_in->attrs(), kHandleAttr, &handle));
    const tensorflow::TensorId source = tensorflow::ParseTensorName(handle);
    const auto position = nodes.find(std::string(source.node()));
    const std::vector<const Edge*> edges(stand_in->out_edges().begin(), stand_in->out_edges().end());
    for (const Edge* edge : edges) {
      if (edge->IsControlEdge()) continue;
      const bool is_there =
          position != nodes.end() && source.index() >= 0 && source.index() < position->second->num_outputs();
      if (!is_there) {
        return absl::InternalError(absl::StrCat("Node '", edge->dst()->name(), "' has lost its input '", handle, "'"));
      }
      Node* const call = edge->dst();
      const int input = edge->dst_input();
      graph->RemoveEdge(edge);
      graph->AddEdge(position->second, source.index(), call, input);
    }
    graph->RemoveNode(stand_in);
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
