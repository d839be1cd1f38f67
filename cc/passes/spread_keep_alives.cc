// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/spread_keep_alives.h"

#include <string>
#include <utility>
#include <vector>

#include "cc/base/names.h"
#include "cc/base/status.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;

absl::Status VerifyUnread(const GraphRegions& regions, const Node* structural) {
  for (const Edge* edge : structural->out_edges()) {
    if (edge->IsControlEdge() || regions.IsStructural(edge->dst())) continue;
    return InvalidArgument("Node '", edge->dst()->name(), "' reads '", structural->name(),
                           "', which carries no value at run time");
  }
  return absl::OkStatus();
}

// Puts a Return without inputs in the place of `node`.
absl::Status DropInputs(Node* node, Graph* graph) {
  tensorflow::NodeDef def = node->def();
  def.clear_input();
  (*def.mutable_attr())["N"].set_i(0);
  const std::string device = node->assigned_device_name();
  std::vector<Node*> before;
  // Who reads the Return, which output, and at which of its inputs.
  struct Reader {
    Node* node;
    int output;
    int input;
  };
  std::vector<Reader> after;
  for (const Edge* edge : node->in_edges()) {
    if (edge->IsControlEdge()) before.push_back(edge->src());
  }
  for (const Edge* edge : node->out_edges()) after.push_back({edge->dst(), edge->src_output(), edge->dst_input()});
  graph->RemoveNode(node);
  absl::Status status;
  Node* const bare = graph->AddNode(std::move(def), &status);
  TFR_RETURN_IF_ERROR(status);
  bare->set_assigned_device_name(device);
  for (Node* src : before) graph->AddControlEdge(src, bare);
  for (const Reader& reader : after) graph->AddEdge(bare, reader.output, reader.node, reader.input);
  return absl::OkStatus();
}

}  // namespace

absl::Status DropKeepAlives(const GraphRegions& regions, Graph* graph) {
  std::vector<Node*> structural;
  // The Returns that read the token of a KeepAlive.
  std::vector<Node*> kept_alive;
  for (Node* node : graph->op_nodes()) {
    if (regions.IsStructural(node)) structural.push_back(node);
    if (node->type_string() == kReturnOp && node->num_inputs() > 0) kept_alive.push_back(node);
  }
  for (Node* node : kept_alive) TFR_RETURN_IF_ERROR(DropInputs(node, graph));
  for (Node* node : structural) TFR_RETURN_IF_ERROR(VerifyUnread(regions, node));
  for (Node* node : structural) graph->RemoveNode(node);
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
