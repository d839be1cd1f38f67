// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/find_invariants.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cc/analysis/argument_trace.h"
#include "cc/analysis/call_graph.h"
#include "cc/analysis/frame_conditions.h"
#include "cc/analysis/late_values.h"
#include "cc/analysis/live_arguments.h"

namespace tensorflow_recursion {
namespace {

const std::string& FunctionAround(const FlowGraph& flow, const FlowCallSite& site) {
  return flow.regions.regions()[flow.regions.FunctionRegionOf(flow.nodes[site.node].region)].name;
}

CallGraph CallsOf(const FlowGraph& flow) {
  CallGraph::Calls calls;
  for (const FlowCallSite& site : flow.call_sites) {
    calls[FunctionAround(flow, site)].push_back(site.callee);
    calls.try_emplace(site.callee);
  }
  return CallGraph(std::move(calls));
}

// All components of functions that call one another, with the calls of each.
std::vector<InvariantRecursion> FindRecursions(const FlowGraph& flow) {
  const CallGraph graph = CallsOf(flow);
  std::vector<InvariantRecursion> recursions(graph.components().size());
  for (size_t i = 0; i < recursions.size(); ++i) {
    for (const std::string& name : graph.components()[i]) {
      recursions[i].functions.push_back(name.empty() ? GraphRegions::kRoot : flow.regions.FindFunction(name));
    }
  }
  for (size_t i = 0; i < flow.call_sites.size(); ++i) {
    const FlowCallSite& site = flow.call_sites[i];
    const int callee = graph.ComponentOf(site.callee);
    const bool is_inside = graph.ComponentOf(FunctionAround(flow, site)) == callee;
    (is_inside ? recursions[callee].inner_sites : recursions[callee].outer_sites).push_back(i);
  }
  return recursions;
}

bool IsCompiled(const InvariantRecursion& recursion, const std::set<RegionId>& compiled) {
  return std::any_of(recursion.functions.begin(), recursion.functions.end(),
                     [&](RegionId function) { return compiled.count(function) > 0; });
}

// Follows the arguments of one recursion from call to call.
class ArgumentFollower {
 public:
  ArgumentFollower(const FlowGraph& flow, InvariantRecursion* recursion) : flow_(flow), recursion_(*recursion) {}

  void Run() {
    for (const auto* sites : {&recursion_.inner_sites, &recursion_.outer_sites}) {
      for (size_t site : *sites) CheckNumber(flow_.call_sites[site]);
    }
    for (size_t site : recursion_.inner_sites) FollowCall(flow_.call_sites[site]);
    SpreadChanges();
    JoinEntries();
  }

 private:
  const std::vector<NodeId>& EntriesOf(RegionId function) const { return flow_.functions.at(function).entries; }

  // Rules out all arguments of a function whose calls differ in how many they pass, as in a forged graph.
  void CheckNumber(const FlowCallSite& site) {
    const RegionId callee = flow_.regions.FindFunction(site.callee);
    const size_t num_inputs = flow_.nodes[site.node].inputs.size();
    const auto [known, is_first] = num_arguments_.try_emplace(callee, num_inputs);
    if (known->second == num_inputs && EntriesOf(callee).size() <= num_inputs) return;
    for (NodeId entry : EntriesOf(callee)) Change(entry);
  }

  void FollowCall(const FlowCallSite& site) {
    const std::vector<NodeId>& entries = EntriesOf(flow_.regions.FindFunction(site.callee));
    const std::vector<Input>& inputs = flow_.nodes[site.node].inputs;
    for (size_t i = 0; i < std::min(entries.size(), inputs.size()); ++i) {
      if (entries[i] == kNone) continue;
      const NodeId passed = inputs[i].is_token() ? TraceArgument(flow_, inputs[i].source).entry : NodeId();
      if (passed == kNone) {
        Change(entries[i]);
      } else {
        passed_to_[passed].push_back(entries[i]);
      }
    }
  }

  // Notes that the argument of `entry` is not the same in all frames.
  void Change(NodeId entry) {
    if (entry != kNone && changing_.insert(entry).second) changed_.push_back(entry);
  }

  void SpreadChanges() {
    for (size_t next = 0; next < changed_.size(); ++next) {
      const auto readers = passed_to_.find(changed_[next]);
      if (readers == passed_to_.end()) continue;
      for (NodeId reader : readers->second) Change(reader);
    }
  }

  // The arguments that are left are handed around in circles, each through all functions of the recursion. Each circle
  // is an invariant.
  void JoinEntries() {
    std::map<NodeId, std::set<NodeId>> neighbours;
    for (const auto& [from, readers] : passed_to_) {
      for (NodeId to : readers) {
        if (changing_.count(to) > 0) continue;
        neighbours[from].insert(to);
        neighbours[to].insert(from);
      }
    }
    std::set<NodeId> seen;
    for (RegionId function : recursion_.functions) {
      for (NodeId entry : EntriesOf(function)) {
        if (neighbours.count(entry) == 0 || !seen.insert(entry).second) continue;
        std::vector<NodeId> circle = {entry};
        for (size_t next = 0; next < circle.size(); ++next) {
          for (NodeId neighbour : neighbours[circle[next]]) {
            if (seen.insert(neighbour).second) circle.push_back(neighbour);
          }
        }
        AddInvariant(circle);
      }
    }
  }

  // Adds the arguments of a circle as an invariant, unless one function has two of them: a call from outside may pass
  // it two different values.
  void AddInvariant(const std::vector<NodeId>& circle) {
    std::map<RegionId, int> arguments;
    for (NodeId entry : circle) {
      const RegionId function = flow_.nodes[entry].region;
      const std::vector<NodeId>& entries = EntriesOf(function);
      const auto position = std::find(entries.begin(), entries.end(), entry);
      if (!arguments.emplace(function, static_cast<int>(position - entries.begin())).second) return;
    }
    if (arguments.size() == recursion_.functions.size()) recursion_.invariants.push_back(std::move(arguments));
  }

  const FlowGraph& flow_;
  InvariantRecursion& recursion_;
  // How many arguments every call of a function has.
  std::map<RegionId, size_t> num_arguments_;
  std::map<NodeId, std::vector<NodeId>> passed_to_;
  std::set<NodeId> changing_;
  std::vector<NodeId> changed_;  // the entries in changing_, in the order in which they were found
};

// Takes out the invariants for which a program could behave differently if they were kept.
class InvariantChecker {
 public:
  InvariantChecker(const FlowGraph& flow, const std::vector<NodeId>& order)
      : flow_(flow),
        live_(FindLiveArguments(flow, order)),
        conditions_(flow, order, &live_),
        late_(FindValuesAfterSideEffects(flow, order)) {}

  void Run(InvariantRecursion* recursion) const {
    std::vector<std::map<RegionId, int>>& all = recursion->invariants;
    all.erase(std::remove_if(all.begin(), all.end(),
                             [&](const auto& invariant) { return !Lives(invariant) || IsLate(*recursion, invariant); }),
              all.end());
    while (!all.empty() && !CallsOpen(*recursion)) all.erase(all.begin());
  }

 private:
  const Input& InputOf(size_t site, const std::map<RegionId, int>& invariant) const {
    const FlowCallSite& call = flow_.call_sites[site];
    return flow_.nodes[call.node].inputs[invariant.at(flow_.regions.FindFunction(call.callee))];
  }

  bool Lives(const std::map<RegionId, int>& invariant) const {
    return std::all_of(invariant.begin(), invariant.end(), [&](const auto& argument) {
      return live_[flow_.functions.at(argument.first).entries[argument.second]];
    });
  }

  // Whether the value that a call passes, from outside or inside, may wait for a side effect.
  bool IsLate(const InvariantRecursion& recursion, const std::map<RegionId, int>& invariant) const {
    const auto is_late = [&](size_t site) {
      const Input& input = InputOf(site, invariant);
      return input.is_token() && late_.IsLate(input.source.node);
    };
    return std::any_of(recursion.outer_sites.begin(), recursion.outer_sites.end(), is_late) ||
           std::any_of(recursion.inner_sites.begin(), recursion.inner_sites.end(), is_late);
  }

  // Whether each call inside is opened by other arguments wherever an invariant would open it.
  bool CallsOpen(const InvariantRecursion& recursion) const {
    return std::all_of(recursion.inner_sites.begin(), recursion.inner_sites.end(), [&](size_t site) {
      std::set<const Input*> kept;
      for (const auto& invariant : recursion.invariants) kept.insert(&InputOf(site, invariant));
      const std::vector<Input>& inputs = flow_.nodes[flow_.call_sites[site].node].inputs;
      return std::all_of(kept.begin(), kept.end(), [&](const Input* input) {
        const Condition known = conditions_.Of(*input);
        return std::any_of(inputs.begin(), inputs.end(), [&](const Input& other) {
          return other.is_token() && kept.count(&other) == 0 && known.Implies(conditions_.Of(other));
        });
      });
    });
  }

  const FlowGraph& flow_;
  const IdVector<NodeId, bool> live_;
  const FrameConditions conditions_;
  const LateValues late_;
};

}  // namespace

std::vector<InvariantRecursion> FindInvariants(const FlowGraph& flow, const std::vector<NodeId>& order,
                                               const std::set<RegionId>& compiled) {
  // What other devices send may be dead, or come late.
  const bool is_in_parts = std::any_of(flow.call_sites.begin(), flow.call_sites.end(), [](const FlowCallSite& site) {
    return site.join != nullptr || site.announcement != nullptr;
  });
  if (flow.crosses_devices || is_in_parts) return {};
  std::vector<InvariantRecursion> recursions = FindRecursions(flow);
  auto drop_others = [&] {
    recursions.erase(std::remove_if(recursions.begin(), recursions.end(),
                                    [](const InvariantRecursion& recursion) { return recursion.invariants.empty(); }),
                     recursions.end());
  };
  for (InvariantRecursion& recursion : recursions) {
    if (recursion.inner_sites.empty() || IsCompiled(recursion, compiled)) continue;
    ArgumentFollower(flow, &recursion).Run();
  }
  drop_others();
  if (recursions.empty()) return {};
  const InvariantChecker checker(flow, order);
  for (InvariantRecursion& recursion : recursions) checker.Run(&recursion);
  drop_others();
  return recursions;
}

}  // namespace tensorflow_recursion
