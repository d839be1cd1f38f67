// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/node_facts.h"

#include <algorithm>

#include "cc/base/names.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {

using tensorflow::Edge;
using tensorflow::Node;

bool IsSwitchN(const Node* node) { return Is(node, "_SwitchN") || Is(node, "_RefSwitchN"); }

bool IsBodySource(const Node* node) { return Is(node, kEntryOp) || Is(node, kFrameStartOp); }

bool IsCallSitePart(const Node* node) {
  return Is(node, kCallOp) || Is(node, kReturnOp) || Is(node, kJoinCallOp) || Is(node, kAnnounceCallOp);
}

bool HoldsConstant(const Node* node) { return node->IsConstant() || Is(node, "FakeParam"); }

bool IsLoopConstant(const Node& enter) {
  bool is_constant = false;
  return tensorflow::GetNodeAttr(enter.attrs(), "is_constant", &is_constant).ok() && is_constant;
}

bool IsOfPartialLoop(const Node* node) { return node->attrs().Find(kPartialLoopAttr) != nullptr; }

bool ReadsReference(const Node* node) {
  const auto& edges = node->in_edges();
  return std::any_of(edges.begin(), edges.end(), [](const Edge* edge) {
    return !edge->IsControlEdge() && tensorflow::IsRefType(edge->src()->output_type(edge->src_output()));
  });
}

bool AnyReadsReference(const tensorflow::Graph& graph) {
  const auto nodes = graph.op_nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return ReadsReference(node); });
}

const Edge* InputEdge(const Node* node, int input) {
  const Edge* edge = nullptr;
  return node->input_edge(input, &edge).ok() ? edge : nullptr;
}

std::vector<const Edge*> InputEdges(const Node* node) {
  std::vector<const Edge*> edges(node->num_inputs(), nullptr);
  for (const Edge* edge : node->in_edges()) {
    if (!edge->IsControlEdge()) edges[edge->dst_input()] = edge;
  }
  return edges;
}

absl::Status ReadInteger(const Node* node, const char* attr, int64_t* value) {
  return tensorflow::GetNodeAttr(node->attrs(), attr, value);
}

}  // namespace tensorflow_recursion
