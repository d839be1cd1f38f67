// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/late_values.h"

#include "cc/analysis/effects.h"

namespace tensorflow_recursion {

void MarkNodesBehind(const FlowGraph& flow, const std::vector<NodeId>& order,
                     const std::function<bool(const FlowNode&)>& counts, IdVector<NodeId, bool>* marked) {
  for (NodeId id : order) {
    bool is_behind = (*marked)[id] || counts(flow.nodes[id]);
    ForEachSource(flow.nodes[id], [&](const Source& source) { is_behind = is_behind || (*marked)[source.node]; });
    (*marked)[id] = is_behind;
  }
}

LateValues::LateValues(const FlowGraph& flow, const std::vector<NodeId>& order, const MayWait& may_wait)
    : flow_(flow), order_(order), may_wait_(may_wait) {
  FindRegions();
  is_late_.assign(flow.nodes.size(), false);
  MarkNodes();
}

void LateValues::FollowArguments() {
  while (AddLateArguments()) MarkNodes();
}

bool LateValues::IsLateArgument(const std::string& function, int index) const {
  return late_arguments_.count({flow_.regions.FindFunction(function), index}) > 0;
}

void LateValues::FindRegions() {
  const auto& regions = flow_.regions.regions();
  waits_inside_.assign(regions.size(), false);
  auto mark = [&](RegionId region) {
    bool is_new = false;
    for (; region != kNone && !waits_inside_[region]; region = regions[region].parent) {
      waits_inside_[region] = is_new = true;
    }
    return is_new;
  };
  for (const FlowNode& node : flow_.nodes) {
    if (node.kind == OpKind::kKernel && may_wait_(node)) mark(node.region);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const FlowNode& node : flow_.nodes) {
      if (node.kind == OpKind::kCallSite && waits_inside_[flow_.CalleeOf(node)]) changed = mark(node.region) || changed;
    }
  }
}

bool LateValues::IsLateByItself(const FlowNode& node) const {
  switch (node.kind) {
    case OpKind::kKernel:
      return may_wait_(node);
    case OpKind::kCallSite:
      return waits_inside_[flow_.CalleeOf(node)];
    case OpKind::kLoopStart:
      return waits_inside_[flow_.loops[node.index].region];
    case OpKind::kEntry:
      return IsLateEntry(node);
    default:
      return false;
  }
}

bool LateValues::IsLateEntry(const FlowNode& entry) const {
  if (late_arguments_.empty()) return false;
  const FlowLoop* const loop = flow_.FindLoop(entry.region);
  if (loop == nullptr) return late_arguments_.count({entry.region, static_cast<int>(entry.index)}) > 0;
  return is_late_[loop->start] || (loop->next != kNone && is_late_[loop->next]);
}

void LateValues::MarkNodes() {
  MarkNodesBehind(flow_, order_, [this](const FlowNode& node) { return IsLateByItself(node); }, &is_late_);
}

bool LateValues::AddLateArguments() {
  const size_t before = late_arguments_.size();
  for (const FlowCallSite& site : flow_.call_sites) {
    const RegionId callee = flow_.regions.FindFunction(site.callee);
    size_t next = 0;
    for (const auto& [index, call] : site.calls) {
      const Input& input = flow_.nodes[site.node].inputs[next++];
      bool is_late = !input.is_constant() && is_late_[input.source.node];
      for (const Source& guard : input.guards) is_late = is_late || is_late_[guard.node];
      if (is_late) late_arguments_.emplace(callee, index);
    }
  }
  return late_arguments_.size() > before;
}

LateValues FindValuesAfterStatefulKernels(const FlowGraph& flow, const std::vector<NodeId>& order) {
  return LateValues(flow, order, [](const FlowNode& node) { return IsStateful(*node.node); });
}

LateValues FindValuesAfterSideEffects(const FlowGraph& flow, const std::vector<NodeId>& order) {
  LateValues late(flow, order, [](const FlowNode& node) { return HasEffect(*node.node); });
  late.FollowArguments();
  return late;
}

}  // namespace tensorflow_recursion
