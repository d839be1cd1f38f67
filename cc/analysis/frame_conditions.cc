// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/frame_conditions.h"

namespace tensorflow_recursion {
namespace {

// What has to happen for a value to come from `source`, besides that its node fires.
Condition OfPort(const FlowNode& node, const Source& source) {
  const auto port = static_cast<uint32_t>(source.port);
  const bool is_port = source.port != Source::kWholeNode;
  switch (node.kind) {
    case OpKind::kBranch:
    case OpKind::kSwitchN:
      return is_port ? Condition{{source.node, port}} : Condition();
    case OpKind::kSwitch:
      // A switch knows its side by the branch on its predicate, which all switches on it share.
      return is_port ? Condition{{node.branch, port}} : Condition();
    case OpKind::kCallSite:
      return {{source.node, port + 1}};
    case OpKind::kLoopStart:
      return node.is_partial ? Condition{{source.node, port + 1}} : Condition();
    default:
      return {};
  }
}

}  // namespace

FrameConditions::FrameConditions(const FlowGraph& flow, const std::vector<NodeId>& order,
                                 const IdVector<NodeId, bool>* live_arguments)
    : flow_(flow), live_arguments_(live_arguments), conditions_(flow.nodes.size()) {
  for (NodeId node : order) Compute(node);
}

Condition FrameConditions::Of(const Source& source) const {
  return conditions_[source.node].And(OfPort(flow_.nodes[source.node], source));
}

Condition FrameConditions::Of(const Input& input) const {
  if (input.is_token()) return Of(input.source);
  Condition all;
  for (const Source& guard : input.guards) all = all.And(Of(guard));
  return all;
}

// Whether the node's value may be missing although all that it waits for in its frame has come.
bool FrameConditions::MayBeDeadInLiveFrame(NodeId id) const {
  const FlowNode& node = flow_.nodes[id];
  if (live_arguments_ != nullptr && (*live_arguments_)[id]) return false;
  if (node.kind == OpKind::kMerge || node.may_be_dead) return true;
  // What an Enter brings into a loop lives in all iterations, unless iterations take place even with dead variables.
  return node.kind == OpKind::kEntry && (!node.node->IsEnter() || node.is_partial || flow_.crosses_devices);
}

void FrameConditions::Compute(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  if (node.kind == OpKind::kUnion) return;  // fires dead or alive
  Condition condition;
  const bool any_input_suffices = node.kind == OpKind::kMerge || node.kind == OpKind::kCallSite || node.is_partial;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Condition input = Of(node.inputs[i]);
    condition = any_input_suffices && i > 0 ? condition.Common(input) : condition.And(input);
  }
  for (const Source& control : node.controls) condition = condition.And(Of(control));
  if (MayBeDeadInLiveFrame(id)) condition = condition.And({{id, 0}});
  conditions_[id] = condition;
}

}  // namespace tensorflow_recursion
