// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/structural_nodes.h"

#include "cc/analysis/node_facts.h"
#include "cc/base/names.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Edge;
using tensorflow::Node;

// Whether the node may bring a KeepAlive's token to a Return inside a loop.
bool BringsToken(const Node* node) { return node->IsEnter() || node->IsIdentity(); }

// Whether the node is one of the NoOps by which Grappler bundles what a KeepAlive waits for, one for each device.
bool IsBundleForKeepAlives(const Node* node) {
  if (!Is(node, "NoOp")) return false;
  for (const Edge* edge : node->out_edges()) {
    if (!edge->dst()->IsSink() && !Is(edge->dst(), kKeepAliveOp)) return false;
  }
  return true;
}

}  // namespace

void StructuralNodes::Find(const tensorflow::Graph& graph) {
  is_structural_.assign(graph.num_node_ids(), false);
  std::vector<const Node*> ready;
  for (const Node* node : graph.op_nodes()) {
    if (Is(node, kKeepAliveOp)) ready.push_back(node);
  }
  while (!ready.empty()) {
    const Node* node = ready.back();
    ready.pop_back();
    if (Contains(node)) continue;
    is_structural_[node->id()] = true;
    for (const Edge* edge : node->out_edges()) {
      if (!edge->IsControlEdge() && BringsToken(edge->dst())) ready.push_back(edge->dst());
    }
    for (const Edge* edge : node->in_edges()) {
      if (IsBundleForKeepAlives(edge->src())) ready.push_back(edge->src());
    }
  }
}

bool StructuralNodes::IsReal(const Edge* edge) const {
  if (edge->src()->IsSource() || edge->dst()->IsSink()) return false;
  return !Contains(edge->src()) && !Contains(edge->dst());
}

}  // namespace tensorflow_recursion
