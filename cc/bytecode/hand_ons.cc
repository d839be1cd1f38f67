// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/hand_ons.h"

#include "cc/bytecode/loop_variables.h"

namespace tensorflow_recursion {

HandOns::HandOns(const FlowGraph& flow) : flow_(flow) {
  for (NodeId id : flow.nodes.ids()) {
    const FlowNode& node = flow.nodes[id];
    if (node.is_removed) continue;
    if (node.kind == OpKind::kResult) results_[{node.region, static_cast<int>(node.index)}] = id;
    if (node.kind == OpKind::kExit) exits_[node.region].push_back(id);
  }
}

NodeId HandOns::ResultOf(RegionId region, int index) const {
  const auto position = results_.find({region, index});
  return position == results_.end() ? NodeId() : position->second;
}

void HandOns::VisitNode(NodeId id, const Visit& visit) const {
  const FlowNode& node = flow_.nodes[id];
  switch (node.kind) {
    case OpKind::kPass:
      for (int port = 0; port < node.num_ports && port < static_cast<int>(node.inputs.size()); ++port) {
        visit(node.inputs[static_cast<size_t>(port)], {id, port});
      }
      return;
    case OpKind::kSwitch:
    case OpKind::kSwitchN:
      for (int port = 0; port < node.num_ports; ++port) visit(node.inputs[0], {id, port});
      return;
    case OpKind::kMerge:
      for (const Input& input : node.inputs) visit(input, {id, 0});
      return;
    case OpKind::kResult:
      return visit(node.inputs[0], {id, 0});
    case OpKind::kCallSite:
      return VisitSite(id, visit);
    default:
      return;
  }
}

void HandOns::VisitSite(NodeId id, const Visit& visit) const {
  const FlowNode& node = flow_.nodes[id];
  const auto callee = flow_.functions.find(flow_.CalleeOf(node));
  if (callee == flow_.functions.end()) return;
  const std::vector<NodeId>& entries = callee->second.entries;
  for (size_t i = 0; i < node.inputs.size() && i < entries.size(); ++i) {
    if (entries[i] != kNone) visit(node.inputs[i], {entries[i], 0});
  }
  for (int port = 0; port < node.num_ports; ++port) {
    Input returned;
    returned.source = {ResultOf(callee->first, port), 0};
    if (returned.source.node != kNone) visit(returned, {id, port});
  }
}

void HandOns::VisitLoop(const FlowLoop& loop, const Visit& visit) const {
  if (IsSimpleLoop(flow_, loop)) {
    for (const LoopVariable& variable : VariablesOf(flow_, loop)) {
      visit(variable.start, {variable.entry, 0});
      if (variable.next) visit(*variable.next, {variable.entry, 0});
    }
  }
  const auto exits = exits_.find(loop.region);
  if (exits == exits_.end()) return;
  for (NodeId id : exits->second) {
    visit(flow_.nodes[id].inputs[0], {loop.start, static_cast<int>(flow_.nodes[id].index)});
  }
}

ValueClasses::ValueClasses(const FlowGraph& flow) : classes_(0) {
  for (const FlowNode& node : flow.nodes) {
    first_.Add(size_);
    size_ += static_cast<size_t>(node.num_ports) + 1;
  }
  Separate();
}

}  // namespace tensorflow_recursion
