// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/origins.h"

#include <map>

#include "cc/analysis/effects.h"
#include "cc/bytecode/loop_variables.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {
namespace {

// A value whose origin has more events counts as an event of its own, because to compare large sets would take long.
constexpr size_t kMostEvents = 16;
// How many rounds are made at most. Each may tell arguments apart that were taken to come together before.
constexpr int kMostSplits = 10;

// Whether the node only makes a handle, as a variable does, and so waits for nothing. (An Unstage has no inputs either,
// but waits for what others stage.)
bool MakesHandle(const tensorflow::Node& node) {
  return node.num_inputs() == 0 && node.num_outputs() == 1 &&
         (node.output_type(0) == tensorflow::DT_RESOURCE || tensorflow::IsRefType(node.output_type(0)));
}

// Whether the node is of the main graph, waits for nothing outside of it, and surely yields its outputs. The main graph
// runs once, so it does not matter that such nodes take time: all that they give to a call counts as coming together.
// This helps because recursions mostly hand on what is given to the first call.
bool IsPreparation(const FlowNode& node) {
  if (node.region != GraphRegions::kRoot || node.may_be_dead) return false;
  if (node.kind == OpKind::kPass) return true;
  if (node.kind != OpKind::kKernel && node.kind != OpKind::kScalar) return false;
  return !IsStateful(*node.node) || ReadsState(node.node->type_string()) || MakesHandle(*node.node);
}

// Whether the ports of a node come at different times.
bool PortsComeApart(OpKind kind) {
  return kind == OpKind::kCallSite || kind == OpKind::kLoopStart || kind == OpKind::kSwitchN;
}

}  // namespace

Origins::Origins(const FlowGraph& flow, const std::vector<NodeId>& order, IdVector<NodeId, bool> is_arithmetic)
    : flow_(flow), order_(order), is_arithmetic_(std::move(is_arithmetic)) {
  representative_.assign(flow.nodes.size(), kNone);
  origin_of_.assign(flow.nodes.size(), Condition());
  FindFirstEntries();
  for (int round = 0; round < kMostSplits; ++round) {
    Compute();
    if (!SplitEntries()) return;
  }
  for (NodeId id : flow.nodes.ids()) representative_[id] = id;
  Compute();
}

// At first all arguments of a function are taken to come together. So do the variables of a loop, unless some may live
// without the others.
void Origins::FindFirstEntries() {
  for (NodeId id : flow_.nodes.ids()) representative_[id] = id;
  std::map<RegionId, NodeId> of_region;
  for (NodeId id : flow_.nodes.ids()) {
    const FlowNode& node = flow_.nodes[id];
    if (node.kind != OpKind::kEntry || node.is_removed) continue;
    const FlowLoop* const loop = flow_.FindLoop(node.region);
    if (loop == nullptr || IsSimpleLoop(flow_, *loop)) {
      representative_[id] = of_region.try_emplace(node.region, id).first->second;
    }
  }
}

void Origins::Compute() {
  for (NodeId id : order_) {
    if (flow_.nodes[id].is_removed) continue;
    origin_of_[id] = Compute(id);
    if (origin_of_[id].size() <= kMostEvents) continue;
    origin_of_[id] = {{id, 0}};
    is_arithmetic_[id] = false;
  }
}

Condition Origins::Compute(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  if (is_arithmetic_[id] || IsPreparation(node)) return OfInputs(node);
  switch (node.kind) {
    case OpKind::kBranch:
      return OfInputs(node);
    case OpKind::kSwitch:
      if (!node.controls.empty()) break;
      return node.inputs[0].is_constant() ? origin_of_[node.branch]
                                          : Of(node.inputs[0].source).And(origin_of_[node.branch]);
    case OpKind::kEntry:
      return {{representative_[id], 0}};
    case OpKind::kArgument:  // comes when the root opens
    case OpKind::kFrameStart:
      return {};
    default:
      break;
  }
  return {{id, 0}};
}

Condition Origins::OfInputs(const FlowNode& node) const {
  Condition all;
  ForEachSource(node, [&](const Source& source) { all = all.And(Of(source)); });
  return all;
}

Condition Origins::Of(const Source& source) const {
  const FlowNode& node = flow_.nodes[source.node];
  const Condition& whole = origin_of_[source.node];
  if (source.port == Source::kWholeNode) return whole;
  const auto port = static_cast<uint32_t>(source.port) + 1;
  if (node.kind == OpKind::kBranch) return whole.And({{source.node, port}});
  if (node.kind == OpKind::kSwitch) return OfSide(whole, source.node, {node.branch, port});
  return PortsComeApart(node.kind) ? whole.And({{source.node, port}}) : whole;
}

// Returns the origin of a value behind a Switch. If the value is on this side already, the Switch adds no event, but
// counts as one. Otherwise arithmetic in front of the Switch could be put into one piece with arithmetic behind it, and
// the piece would wait for itself.
Condition Origins::OfSide(const Condition& whole, NodeId node, const Event& side) const {
  const Condition both = whole.And({side});
  return both == whole ? both.And({{node, 0}}) : both;
}

// Tells arguments of functions apart that have different origins in a call. Returns whether there were any.
bool Origins::SplitEntries() {
  bool changed = false;
  for (const FlowCallSite& site : flow_.call_sites) {
    const auto callee = flow_.functions.find(flow_.regions.FindFunction(site.callee));
    if (callee == flow_.functions.end() || site.node == kNone) continue;
    // The new representatives of entries, by the old one and the origin in the call.
    std::map<std::pair<NodeId, Condition>, NodeId> first;
    const std::vector<Input>& inputs = flow_.nodes[site.node].inputs;
    const std::vector<NodeId>& entries = callee->second.entries;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i] == kNone) continue;
      const bool is_token = i < inputs.size() && !inputs[i].is_constant();
      const Condition origin = is_token ? Of(inputs[i].source) : Condition();
      const NodeId before = representative_[entries[i]];
      representative_[entries[i]] = first.try_emplace({before, origin}, entries[i]).first->second;
      changed = changed || representative_[entries[i]] != before;
    }
  }
  return changed;
}

}  // namespace tensorflow_recursion
