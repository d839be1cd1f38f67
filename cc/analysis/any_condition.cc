// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/any_condition.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace tensorflow_recursion {
namespace {

// How many sides the event's branch has, one of which is taken; 0 if the event does not belong to a branch.
int NumSides(const FlowGraph& flow, const Event& event) {
  const FlowNode& node = flow.nodes[event.node];
  if (node.kind == OpKind::kBranch) return 2;
  return node.kind == OpKind::kSwitchN ? node.num_ports : 0;
}

// Takes out each condition that implies another one of the set, which holds whenever it does. For example, {p, q} is
// taken out of {p} and {p, q}.
void DropImplied(std::set<Condition>* conditions) {
  for (auto position = conditions->begin(); position != conditions->end();) {
    const bool is_implied = std::any_of(conditions->begin(), conditions->end(), [&](const Condition& other) {
      return other != *position && position->Implies(other);
    });
    position = is_implied ? conditions->erase(position) : std::next(position);
  }
}

}  // namespace

bool JoinSides(const FlowGraph& flow, std::set<Condition>* conditions) {
  // The conditions that differ only in the side of one branch, by their other events and that branch.
  std::map<std::pair<Condition, NodeId>, std::set<Condition>> sides;
  for (const Condition& condition : *conditions) {
    for (const Event& event : condition.events()) {
      const int num_sides = NumSides(flow, event);
      if (num_sides == 0) continue;
      const Condition rest = condition.Without(event);
      std::set<Condition>& found = sides[{rest, event.node}];
      found.insert(condition);
      if (static_cast<int>(found.size()) < num_sides) continue;
      for (const Condition& side : std::set<Condition>(found)) conditions->erase(side);
      conditions->insert(rest);
      return true;
    }
  }
  return false;
}

std::optional<Condition> AnyOf(const FlowGraph& flow, std::set<Condition> conditions) {
  do {
    DropImplied(&conditions);
  } while (JoinSides(flow, &conditions));
  if (conditions.size() != 1) return std::nullopt;
  return *conditions.begin();
}

}  // namespace tensorflow_recursion
