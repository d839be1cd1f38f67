// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/call_nodes.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "cc/base/names.h"

namespace tensorflow_recursion {

using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;

bool IsInvoke(const NodeDef& node) { return node.op() == kInvokeOp; }

bool IsRetain(const NodeDef& node) { return node.op() == kRetainOp; }

bool IsRecall(const NodeDef& node) { return node.op() == kRecallOp; }

bool IsPureGradientOp(const std::string& op) {
  static const auto* const ops = new std::unordered_set<std::string>{
      kRetainOp, kRecallOp, kContributeOp, kContributeNoneOp, kContributeViewOp, kCollectOp, kTotalOp};
  return ops->count(op) > 0;
}

const std::string& RecordOwner(const NodeDef& node) {
  static const std::string* const none = new std::string;
  const auto owner = node.attr().find(kFunctionAttr);
  return owner == node.attr().end() ? *none : owner->second.s();
}

bool HasInvoke(const tensorflow::GraphDef& graph) {
  return std::any_of(graph.node().begin(), graph.node().end(), IsInvoke);
}

std::vector<Node*> FindInvokes(const Graph& graph) {
  std::vector<Node*> calls;
  for (Node* node : graph.op_nodes()) {
    if (IsInvoke(node->def())) calls.push_back(node);
  }
  return calls;
}

bool IsFunctionGraph(const Graph& graph) {
  const auto nodes = graph.op_nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return node->IsArg() || node->IsRetval(); });
}

const std::string& CalleeOf(const NodeDef& invoke) {
  static const std::string* const kNone = new std::string();
  const auto it = invoke.attr().find(kCalleeAttr);
  return it == invoke.attr().end() ? *kNone : it->second.func().name();
}

}  // namespace tensorflow_recursion
