// SPDX-License-Identifier: Apache-2.0
#include "cc/program/dead_paths.h"

#include <set>
#include <utility>

namespace tensorflow_recursion {
namespace {

// Follows the edges out of dead ports to the operators that must be told of the death. Those in between need not be
// told, because they just never fire.
class DeathWalk {
 public:
  // If `ends_at_lists`, the walk ends at merges and calls, even if all their inputs are dead: they have death lists of
  // their own. When the program runs, they are told of one input after the other, and at the last one tell their lists.
  DeathWalk(const Region& region, bool ends_at_lists) : region_(region), ends_at_lists_(ends_at_lists) {}

  void KillPort(const Port& port) {
    for (uint32_t e = port.begin; e < port.end; ++e) edges_.push_back(e);
  }
  void KillOp(const Op& op) {
    for (int i = 0; i <= op.num_ports; ++i) KillPort(region_.ports[op.port + i]);
  }

  // Returns who must be told: first what is dead as a whole, then what has lost some of its inputs.
  std::vector<DeathEvent> Finish() {
    while (!edges_.empty()) {
      const Edge& edge = region_.edges[edges_.back()];
      edges_.pop_back();
      Follow(edge);
    }
    std::vector<DeathEvent> events = std::move(events_);
    for (const auto& [op, inputs] : partly_dead_) {
      if (dead_.count(op) > 0) continue;
      for (uint16_t input : inputs) events.push_back({op, input});
    }
    return events;
  }

 private:
  void Die(OpId op) {
    if (!dead_.insert(op).second) return;
    const Op& of = region_.ops[op];
    KillOp(of);
    if (of.kind != OpKind::kBranch) return;
    // No edge leads from a branch to its gates: they look its predicate up.
    for (const OpId gate : region_.GatesOf(of)) Die(gate);
  }

  void TellOnce(OpId op) {
    if (dead_.insert(op).second) events_.push_back({op, 0});
  }

  void Follow(const Edge& edge) {
    const Op& op = region_.ops[edge.op];
    switch (op.kind) {
      case OpKind::kResult:
      case OpKind::kSend:
        return TellOnce(edge.op);
      case OpKind::kUnion:
        partly_dead_[edge.op].insert(edge.index);
        return;
      case OpKind::kLoopStart:
        if (!op.takes_dead) return Die(edge.op);
        events_.push_back({edge.op, edge.index});
        return;
      case OpKind::kLoopNext:
        if (op.takes_dead) events_.push_back({edge.op, edge.index});
        return;
      case OpKind::kMerge:
      case OpKind::kCallSite:
        return LoseInput(edge);
      default:
        Die(edge.op);
    }
  }

  // A merge or a call is dead when all its inputs are, or when any of its control inputs is.
  void LoseInput(const Edge& edge) {
    if (edge.kind == EdgeKind::kControl) return Die(edge.op);
    std::set<uint16_t>& inputs = partly_dead_[edge.op];
    inputs.insert(edge.index);
    if (!ends_at_lists_ && inputs.size() == NumTokens(region_.ops[edge.op])) Die(edge.op);
  }

  // How many inputs come as tokens: all of a merge, and those of a call that are no constants.
  static size_t NumTokens(const Op& op) { return op.kind == OpKind::kMerge ? op.num_inputs : op.num_tokens; }

  const Region& region_;
  const bool ends_at_lists_;
  // The edges that are still to be followed.
  std::vector<uint32_t> edges_;
  // Operators that are dead or have been told, and the dead inputs of others.
  std::set<OpId> dead_;
  std::map<OpId, std::set<uint16_t>> partly_dead_;
  std::vector<DeathEvent> events_;
};

// Whether a port of the operator may be dead while others are not.
bool PortsDieApart(const Op& op) {
  return op.kind == OpKind::kBranch || op.kind == OpKind::kSwitchN || op.kind == OpKind::kCallSite ||
         op.kind == OpKind::kEntry || (op.kind == OpKind::kLoopStart && op.takes_dead) || op.may_be_dead;
}

// Whether a death list of the operator's ports goes on through calls and merges, to all that dies in the end. It does
// where deaths are frequent: a branch kills one side whenever it fires. The other deaths are rare, and there may be one
// for each operator of a body. If each of their lists reached to the end of the body, as they would in a chain of calls
// or conditionals, the lists would take the square of the body's size.
bool TellsAllAtOnce(const Op& op) {
  return op.kind == OpKind::kBranch || op.kind == OpKind::kSwitchN || op.kind == OpKind::kEntry;
}

// Whether it may turn out when the program runs that all outputs of the operator are dead.
bool DiesAsAWhole(const Op& op) {
  return op.kind == OpKind::kMerge || op.kind == OpKind::kCallSite || op.may_be_dead ||
         (op.kind == OpKind::kLoopStart && op.takes_dead);
}

void AddDeaths(uint32_t port, DeathWalk walk, Region* region) {
  const std::vector<DeathEvent> events = walk.Finish();
  region->port_deaths[port].begin = static_cast<uint32_t>(region->deaths.size());
  region->deaths.insert(region->deaths.end(), events.begin(), events.end());
  region->port_deaths[port].end = static_cast<uint32_t>(region->deaths.size());
}

}  // namespace

void FindDeaths(const SwitchesByBranch& switches, Region* region) {
  region->port_deaths.resize(region->ports.size());
  for (uint32_t index = 0; index < region->ops.size(); ++index) {
    const Op& op = region->ops[index];
    for (uint32_t port = 0; PortsDieApart(op) && port < op.num_ports; ++port) {
      DeathWalk walk(*region, /*ends_at_lists=*/!TellsAllAtOnce(op));
      walk.KillPort(region->ports[op.port + port]);
      const auto of_branch = switches.find(OpId(index));
      if (op.kind == OpKind::kBranch && of_branch != switches.end()) {
        for (OpId of : of_branch->second) walk.KillPort(region->ports[region->ops[of].port + port]);
      }
      AddDeaths(op.port + port, std::move(walk), region);
    }
    if (!DiesAsAWhole(op)) continue;
    DeathWalk walk(*region, /*ends_at_lists=*/true);
    walk.KillOp(op);
    AddDeaths(op.port + op.num_ports, std::move(walk), region);
  }
}

}  // namespace tensorflow_recursion
