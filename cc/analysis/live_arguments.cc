// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/live_arguments.h"

#include <algorithm>
#include <optional>

#include "cc/analysis/condition.h"
#include "cc/analysis/frame_conditions.h"

namespace tensorflow_recursion {
namespace {

// Each round looks at the whole graph, and nearly all graphs need two. After this many, no argument counts as live.
constexpr int kMostRounds = 16;

// Takes out of `live` the arguments of the site that may be dead while another one is live. Returns whether there were
// any.
bool Restrict(const FlowGraph& flow, const FrameConditions& conditions, const FlowCallSite& site,
              IdVector<NodeId, bool>* live) {
  const auto function = flow.functions.find(flow.regions.FindFunction(site.callee));
  if (function == flow.functions.end()) return false;
  const std::vector<NodeId>& entries = function->second.entries;
  const std::vector<Input>& inputs = flow.nodes[site.node].inputs;
  // What holds if any of the arguments lives. Constants do not count, because they live with the others.
  std::optional<Condition> common;
  for (const Input& input : inputs) {
    if (!input.is_token()) continue;
    const Condition condition = conditions.Of(input);
    common = common.has_value() ? common->Common(condition) : condition;
  }
  bool changed = false;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i] == kNone || !(*live)[entries[i]]) continue;
    if (i < inputs.size() && (!inputs[i].is_token() || common->Implies(conditions.Of(inputs[i])))) continue;
    (*live)[entries[i]] = false;
    changed = true;
  }
  return changed;
}

}  // namespace

// Assumes at first that all arguments live in every frame, and takes out those for which some call shows otherwise,
// until no call does.
IdVector<NodeId, bool> FindLiveArguments(const FlowGraph& flow, const std::vector<NodeId>& order) {
  IdVector<NodeId, bool> live(flow.nodes.size(), false);
  for (const auto& [region, function] : flow.functions) {
    for (NodeId entry : function.entries) {
      if (entry != kNone) live[entry] = true;
    }
  }
  for (int round = 0; round < kMostRounds; ++round) {
    const FrameConditions conditions(flow, order, &live);
    bool changed = false;
    for (const FlowCallSite& site : flow.call_sites) changed = Restrict(flow, conditions, site, &live) || changed;
    if (!changed) return live;
  }
  return IdVector<NodeId, bool>(flow.nodes.size(), false);
}

}  // namespace tensorflow_recursion
