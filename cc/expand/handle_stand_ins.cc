// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/handle_stand_ins.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/base/status.h"
#include "cc/expand/call_nodes.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/tensor_id.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Edge;
using tensorflow::Node;

// On a stand-in for a resource: the tensor it stands for.
constexpr char kHandleAttr[] = "_recursion_handle";

}  // namespace

absl::Status DetachHandles(tensorflow::Graph* graph) {
  std::vector<Node*> calls;
  for (Node* node : graph->op_nodes()) {
    const auto& outputs = node->output_types();
    const bool returns_handles = std::count(outputs.begin(), outputs.end(), tensorflow::DT_RESOURCE) > 0;
    if (IsInvoke(node->def()) && !returns_handles) calls.push_back(node);
  }
  for (Node* call : calls) {
    const std::vector<const Edge*> edges(call->in_edges().begin(), call->in_edges().end());
    for (const Edge* edge : edges) {
      if (edge->IsControlEdge() || call->input_type(edge->dst_input()) != tensorflow::DT_RESOURCE) continue;
      tensorflow::NodeDef def;
      def.set_op("Placeholder");
      def.set_name(graph->NewName("recursion_handle"));
      tensorflow::AddNodeAttr("dtype", tensorflow::DT_RESOURCE, &def);
      tensorflow::AddNodeAttr(kHandleAttr, absl::StrCat(edge->src()->name(), ":", edge->src_output()), &def);
      absl::Status status;
      Node* stand_in = graph->AddNode(std::move(def), &status);
      TFR_RETURN_IF_ERROR(status);
      const int input = edge->dst_input();
      graph->AddControlEdge(edge->src(), stand_in);
      graph->RemoveEdge(edge);
      graph->AddEdge(stand_in, 0, call, input);
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
