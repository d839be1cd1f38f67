// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/keep_invariants.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "cc/analysis/argument_trace.h"
#include "cc/analysis/find_invariants.h"
#include "cc/analysis/superfluous_waits.h"
#include "cc/base/status.h"

namespace tensorflow_recursion {
namespace {

// Changes a flow graph so that the invariants of `recursions` are kept; KeepInvariants makes one.
class InvariantKeeper {
 public:
  InvariantKeeper(const std::vector<InvariantRecursion>& recursions, FlowGraph* flow)
      : recursions_(recursions), flow_(*flow) {
    for (const InvariantRecursion& recursion : recursions) {
      for (size_t i = 0; i < recursion.invariants.size(); ++i) {
        for (const auto& [function, argument] : recursion.invariants[i]) {
          invariant_of_[flow_.functions.at(function).entries[argument]] = static_cast<uint32_t>(i);
        }
      }
    }
  }

  void Run() {
    for (NodeId id : flow_.nodes.ids()) {
      FlowNode& node = flow_.nodes[id];
      if (!node.is_removed && ReadsTable(node.kind)) ReadFromTable(&node);
    }
    for (const InvariantRecursion& recursion : recursions_) {
      MarkInvariants(recursion);
      for (size_t site : recursion.inner_sites) flow_.call_sites[site].is_inside = true;
      for (const auto* sites : {&recursion.inner_sites, &recursion.outer_sites}) {
        for (size_t site : *sites) OrderInputs(recursion, &flow_.call_sites[site]);
      }
      for (RegionId function : recursion.functions) OrderEntries(recursion, function);
    }
    RemoveUnread();
  }

 private:
  void ReadFromTable(FlowNode* node) {
    for (Input& input : node->inputs) {
      if (!input.is_token()) continue;
      ArgumentTrace trace = TraceArgument(flow_, input.source);
      const auto found = invariant_of_.find(trace.entry);
      if (!trace.is_argument() || found == invariant_of_.end()) continue;
      NoteBypassed(trace);
      input.invariant = found->second;
      input.guards = std::move(trace.guards);
    }
    std::vector<Source> controls;
    for (const Source& control : node->controls) {
      ArgumentTrace trace;
      if (control.port != Source::kWholeNode) trace = TraceArgument(flow_, control);
      if (!trace.is_argument() || invariant_of_.count(trace.entry) == 0) {
        controls.push_back(control);
        continue;
      }
      NoteBypassed(trace);
      controls.insert(controls.end(), trace.guards.begin(), trace.guards.end());
    }
    node->controls = std::move(controls);
  }

  void NoteBypassed(const ArgumentTrace& trace) {
    bypassed_.insert(trace.between.begin(), trace.between.end());
    bypassed_.insert(trace.entry);
  }

  void MarkInvariants(const InvariantRecursion& recursion) {
    for (size_t site : recursion.inner_sites) {
      for (const Input& input : flow_.nodes[flow_.call_sites[site].node].inputs) {
        if (!input.is_token()) continue;
        const ArgumentTrace trace = TraceArgument(flow_, input.source);
        if (trace.is_argument() && invariant_of_.count(trace.entry) > 0) NoteBypassed(trace);
      }
    }
    for (RegionId function : recursion.functions) {
      flow_.functions.at(function).num_invariants = static_cast<uint32_t>(recursion.invariants.size());
      flow_.functions.at(function).recursion = static_cast<uint32_t>(flow_.recursions.size());
    }
    flow_.recursions.emplace_back();
  }

  // The arguments in their new order, in which the invariants come last.
  static std::vector<int> OrderOf(const InvariantRecursion& recursion, RegionId function, size_t num_arguments) {
    std::vector<int> kept;
    kept.reserve(recursion.invariants.size());
    for (const auto& invariant : recursion.invariants) kept.push_back(invariant.at(function));
    std::vector<int> order;
    for (int i = 0; i < static_cast<int>(num_arguments); ++i) {
      if (std::find(kept.begin(), kept.end(), i) == kept.end()) order.push_back(i);
    }
    order.insert(order.end(), kept.begin(), kept.end());
    return order;
  }

  void OrderInputs(const InvariantRecursion& recursion, FlowCallSite* site) {
    std::vector<Input>& inputs = flow_.nodes[site->node].inputs;
    const RegionId callee = flow_.regions.FindFunction(site->callee);
    num_arguments_[callee] = inputs.size();
    std::vector<int> order = OrderOf(recursion, callee, inputs.size());
    if (site->is_inside) order.resize(order.size() - recursion.invariants.size());
    std::vector<Input> ordered;
    std::map<int, const tensorflow::Node*> calls;
    for (int argument : order) {
      calls[static_cast<int>(ordered.size())] = site->calls.at(argument);
      ordered.push_back(std::move(inputs[argument]));
    }
    inputs = std::move(ordered);
    site->calls = std::move(calls);
  }

  void OrderEntries(const InvariantRecursion& recursion, RegionId function) {
    std::vector<NodeId>& entries = flow_.functions.at(function).entries;
    entries.resize(num_arguments_.at(function));
    std::vector<NodeId> ordered;
    for (int argument : OrderOf(recursion, function, entries.size())) {
      const NodeId entry = entries[argument];
      if (entry != kNone) flow_.nodes[entry].index = static_cast<uint32_t>(ordered.size());
      ordered.push_back(entry);
    }
    entries = std::move(ordered);
  }

  // Removes bypassed nodes that nothing reads any more, and then those that only these have read.
  void RemoveUnread() {
    std::map<NodeId, int> readers;
    for (const FlowNode& node : flow_.nodes) {
      if (!node.is_removed) ForEachSource(node, [&](const Source& source) { ++readers[source.node]; });
    }
    std::vector<NodeId> unread;
    for (NodeId id : bypassed_) {
      if (readers[id] == 0) unread.push_back(id);
    }
    for (size_t next = 0; next < unread.size(); ++next) {
      Remove(unread[next]);
      ForEachSource(flow_.nodes[unread[next]], [&](const Source& source) {
        if (--readers[source.node] == 0 && bypassed_.count(source.node) > 0) unread.push_back(source.node);
      });
    }
  }

  void Remove(NodeId id) {
    FlowNode& node = flow_.nodes[id];
    node.is_removed = true;
    if (node.kind != OpKind::kEntry) return;
    if (FlowLoop* const loop = flow_.FindLoop(node.region); loop != nullptr) {
      loop->entries.erase(node.node);
    } else {
      flow_.functions.at(node.region).entries[node.index] = kNone;
    }
  }

  const std::vector<InvariantRecursion>& recursions_;
  FlowGraph& flow_;
  // The number of the invariant that comes in at an entry.
  std::map<NodeId, uint32_t> invariant_of_;
  // The nodes that let invariants through, of which some reader has been redirected: entries, Switches, Enters.
  std::set<NodeId> bypassed_;
  std::map<RegionId, size_t> num_arguments_;
};

}  // namespace

absl::Status KeepInvariants(const std::set<RegionId>& compiled, FlowGraph* flow) {
  std::vector<NodeId> order;
  TFR_RETURN_IF_ERROR(SortNodes(*flow, &order));
  const std::vector<InvariantRecursion> recursions = FindInvariants(*flow, order, compiled);
  if (recursions.empty()) return absl::OkStatus();
  InvariantKeeper(recursions, flow).Run();
  return DropSuperfluousWaits(flow);
}

}  // namespace tensorflow_recursion
