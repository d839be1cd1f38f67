// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/assumptions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "cc/analysis/any_condition.h"
#include "cc/analysis/conditions.h"
#include "cc/analysis/node_facts.h"

namespace tensorflow_recursion {
namespace {

// Finds what contradicts the assumptions; GiveUpContradicted makes one for each round.
class ContradictionFinder {
 public:
  ContradictionFinder(const FlowGraph& flow, const Conditions& conditions, Assumptions* assumptions)
      : flow_(flow), conditions_(conditions), assumptions_(assumptions) {
    for (NodeId id : flow.nodes.ids()) {
      const FlowNode& node = flow.nodes[id];
      if (node.kind == OpKind::kExit) exits_[node.region].push_back(id);
    }
  }

  // Each of these adds exceptions to the assumptions, and returns whether there were new ones.
  bool FindLateArguments();
  bool FindDeadResults();
  bool FindPartialLoops();

 private:
  bool StartsPartially(const FlowLoop& loop) const;
  bool EndsPartially(const FlowLoop& loop) const;

  const FlowGraph& flow_;
  const Conditions& conditions_;
  Assumptions* const assumptions_;
  // The Exits of each loop, by the region of its body.
  std::map<RegionId, std::vector<NodeId>> exits_;
};

bool ContradictionFinder::FindLateArguments() {
  const size_t before = assumptions_->late_entries.size();
  for (const FlowCallSite& site : flow_.call_sites) {
    const auto function = flow_.functions.find(flow_.regions.FindFunction(site.callee));
    if (function == flow_.functions.end()) continue;
    const std::vector<NodeId>& entries = function->second.entries;
    const std::vector<Input>& inputs = flow_.nodes[site.node].inputs;
    for (size_t i = 0; i < std::min(inputs.size(), entries.size()); ++i) {
      if (entries[i] == kNone || conditions_.Of(inputs[i]) == conditions_.Of(site.node)) continue;
      assumptions_->late_entries.insert(entries[i]);
    }
  }
  return assumptions_->late_entries.size() > before;
}

bool ContradictionFinder::FindDeadResults() {
  const size_t before = assumptions_->dead_results.size();
  for (NodeId id : flow_.nodes.ids()) {
    const FlowNode& node = flow_.nodes[id];
    if (node.kind != OpKind::kResult || conditions_.Of(id).is_always()) continue;
    assumptions_->dead_results.emplace(node.region, static_cast<int>(node.index));
  }
  return assumptions_->dead_results.size() > before;
}

bool ContradictionFinder::FindPartialLoops() {
  const size_t before = assumptions_->partial_loops.size();
  for (const FlowLoop& loop : flow_.loops) {
    if (conditions_.IsPartial(loop.region)) continue;
    if (StartsPartially(loop) || EndsPartially(loop)) assumptions_->partial_loops.insert(loop.region);
  }
  return assumptions_->partial_loops.size() > before;
}

// Whether the variables of a loop come one without the other, or without a value from outside that the loop reads.
bool ContradictionFinder::StartsPartially(const FlowLoop& loop) const {
  const std::vector<Input>& inputs = flow_.nodes[loop.start].inputs;
  std::optional<Condition> together;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (IsLoopConstant(*loop.enters[i])) continue;
    const Condition variable = conditions_.Of(inputs[i]);
    if (together.value_or(variable) != variable) return true;
    together = variable;
  }
  return std::any_of(inputs.begin(), inputs.end(), [&](const Input& input) {
    return !together.value_or(Condition()).Implies(conditions_.Of(input));
  });
}

// Whether the variables of a loop may leave it, or go on, one without the other. They do not if all of them go on to
// the next iteration on one side of a branch, and leave the loop on the other side.
bool ContradictionFinder::EndsPartially(const FlowLoop& loop) const {
  const Condition variables = ConditionOfVariables(loop);
  std::set<Condition> ends;
  std::set<Condition> nexts;
  const auto exits = exits_.find(loop.region);
  if (exits != exits_.end()) {
    for (NodeId exit : exits->second) ends.insert(conditions_.Of(exit).Without(variables));
  }
  for (size_t i = 0; i < loop.nexts.size(); ++i) {
    Condition next = conditions_.Of(flow_.nodes[loop.next].inputs[i]);
    for (const Source& control : loop.next_controls[i]) next = next.And(conditions_.Of(control));
    nexts.insert(next.Without(variables));
  }
  const std::set<Condition> always = {Condition()};
  if (nexts.empty()) return !ends.empty() && ends != always;
  if (ends.size() > 1 || nexts.size() > 1 || nexts.begin()->size() != 1) return true;
  if (ends.empty()) return false;
  std::set<Condition> both = {*ends.begin(), *nexts.begin()};
  return !JoinSides(flow_, &both) || both != always;
}

}  // namespace

bool GiveUpContradicted(const FlowGraph& flow, const Conditions& conditions, Assumptions* assumptions) {
  ContradictionFinder finder(flow, conditions, assumptions);
  const bool has_late_arguments = finder.FindLateArguments();
  const bool has_dead_results = finder.FindDeadResults();
  const bool has_partial_loops = finder.FindPartialLoops();
  return has_late_arguments || has_dead_results || has_partial_loops;
}

}  // namespace tensorflow_recursion
