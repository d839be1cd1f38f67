// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/node_owners.h"

#include "cc/analysis/node_facts.h"
#include "cc/base/names.h"
#include "tensorflow/core/framework/attr_value.pb.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Edge;
using tensorflow::Node;

// The attribute that names the node's owner, nullptr if there is none.
const tensorflow::AttrValue* StatedOwner(const Node* node) {
  const tensorflow::AttrValue* const owner = node->attrs().Find(kBodyAttr);
  return owner == nullptr && IsBodySource(node) ? node->attrs().Find(kFunctionAttr) : owner;
}

}  // namespace

void CopyOwner(const tensorflow::NodeDef& from, tensorflow::NodeDef* to) {
  const auto owner = from.attr().find(kBodyAttr);
  if (owner != from.attr().end()) (*to->mutable_attr())[kBodyAttr] = owner->second;
}

bool IsMarkedAsPartOfBody(const Node& node) {
  const tensorflow::AttrValue* const owner = node.attrs().Find(kBodyAttr);
  return owner != nullptr && !owner->s().empty();
}

void NodeOwners::Find(const tensorflow::Graph& graph, const StructuralNodes& structural) {
  owners_.clear();
  bool has_attribute = false;
  for (const Node* node : graph.op_nodes()) has_attribute = has_attribute || node->attrs().Find(kBodyAttr) != nullptr;
  if (!has_attribute) return;

  owners_.resize(graph.num_node_ids());
  std::vector<bool> is_known(graph.num_node_ids(), false);
  std::vector<const Node*> ready;
  auto set_owner = [&](const Node* node, const std::string& owner) {
    owners_[node->id()] = owner;
    is_known[node->id()] = true;
    ready.push_back(node);
  };
  for (const Node* node : graph.op_nodes()) {
    if (const tensorflow::AttrValue* const owner = StatedOwner(node)) set_owner(node, owner->s());
  }
  while (!ready.empty()) {
    const Node* node = ready.back();
    ready.pop_back();
    auto reach = [&](const Edge* edge, const Node* other) {
      if (structural.IsReal(edge) && !is_known[other->id()]) set_owner(other, Of(node));
    };
    for (const Edge* edge : node->in_edges()) reach(edge, edge->src());
    for (const Edge* edge : node->out_edges()) reach(edge, edge->dst());
  }
}

}  // namespace tensorflow_recursion
