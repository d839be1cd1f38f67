// SPDX-License-Identifier: Apache-2.0
#include "cc/program/links.h"

#include <map>
#include <set>
#include <vector>

#include "cc/analysis/node_facts.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "tensorflow/core/platform/hash.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Node;

void LinkFunctions(Layout* layout) {
  for (const auto& [id, function] : layout->flow.functions) {
    if (id == kNone) continue;
    Region& region = layout->RegionOf(id);
    for (NodeId entry : function.entries) region.entries.push_back(entry == kNone ? OpId() : layout->op_of[entry]);
    if (function.frame_start != kNone) region.frame_start = layout->op_of[function.frame_start];
    region.num_results = static_cast<uint32_t>(function.num_results());
  }
}

absl::Status CheckResults(const FlowCallSite& from, const CallSite& site) {
  const uint32_t num_read = from.returns.empty() ? 0 : static_cast<uint32_t>(from.returns.rbegin()->first) + 1;
  if (num_read <= site.callee->num_results) return absl::OkStatus();
  return InvalidArgument("Call of '", site.callee_name, "' at '", site.name, "' reads output ", num_read - 1,
                         ", the function's body has ", site.callee->num_results);
}

// Fills in the deliveries of one loop.
class LoopLinker {
 public:
  LoopLinker(const Layout& layout, const FlowLoop& from, Loop* loop) : layout_(layout), from_(from), loop_(loop) {}

  void Run() {
    for (const Node* enter : from_.enters) {
      const OpId entry = EntryOf(from_.entries, enter);
      if (entry == kNone) continue;
      auto& deliveries = IsLoopConstant(*enter) ? loop_->constants : loop_->starts;
      deliveries.push_back({PositionIn(from_.enters, enter), entry, kNone});
    }
    for (const Node* merge : from_.merges) LinkVariable(merge);
    MarkLast();
  }

 private:
  OpId EntryOf(const std::map<const Node*, NodeId>& entries, const Node* node) const {
    const auto position = entries.find(node);
    return position == entries.end() ? OpId() : layout_.op_of[position->second];
  }

  void LinkVariable(const Node* merge) {
    const OpId entry = EntryOf(from_.entries, merge);
    const OpId index_entry = EntryOf(from_.index_entries, merge);
    for (const tensorflow::Edge* edge : merge->in_edges()) {
      if (edge->src()->IsEnter()) {
        loop_->starts.push_back({PositionIn(from_.enters, edge->src()), entry, index_entry});
      } else if (edge->src()->IsNextIteration()) {
        loop_->nexts.push_back({PositionIn(from_.nexts, edge->src()), entry, index_entry});
      }
    }
  }

  // Loop variables may share their NextIteration. The last delivery of its value can move the value out of the slot.
  void MarkLast() {
    std::set<uint32_t> taken;
    for (auto next = loop_->nexts.rbegin(); next != loop_->nexts.rend(); ++next) {
      next->is_last = taken.insert(next->slot).second;
    }
  }

  const Layout& layout_;
  const FlowLoop& from_;
  Loop* const loop_;
};

}  // namespace

absl::Status LinkCallSites(Layout* layout) {
  for (const FlowCallSite& from : layout->flow.call_sites) {
    CallSite& site = layout->program->sites.emplace_back();
    const RegionId callee = layout->flow.regions.FindFunction(from.callee);
    site.call_id = from.call_id;
    site.name = from.name;
    site.callee_name = UserName(from.callee);
    site.callee = &layout->RegionOf(callee);
    site.waits_for_announcement = from.join != nullptr;
    const FlowFunction& function = layout->flow.functions.at(callee);
    if (!from.is_inside && function.num_invariants > 0) {
      site.num_invariants = function.num_invariants;
      const FlowRecursion& recursion = layout->flow.recursions.at(function.recursion);
      site.invariant_reads = recursion.reads;
      site.num_kept_results = recursion.num_kept_results;
    }
    site.announce_port = from.announce_port.has_value() ? static_cast<uint32_t>(*from.announce_port) : kNone;
  }
  LinkFunctions(layout);
  for (size_t i = 0; i < layout->flow.call_sites.size(); ++i) {
    TFR_RETURN_IF_ERROR(CheckResults(layout->flow.call_sites[i], layout->program->sites[i]));
  }
  return absl::OkStatus();
}

void LinkLoops(Layout* layout) {
  const FlowGraph& flow = layout->flow;
  for (const FlowLoop& from : flow.loops) {
    const auto index = static_cast<uint32_t>(layout->program->loops.size());
    Loop& loop = layout->program->loops.emplace_back();
    Region& body = layout->RegionOf(from.region);
    loop.name = body.name;
    loop.key = tensorflow::Hash64(loop.name);
    loop.in_function = flow.regions.IsFunctionPart(from.region);
    loop.crosses_devices = from.crosses_devices;
    loop.is_partial = from.is_partial;
    loop.num_nexts = static_cast<uint32_t>(from.nexts.size());
    loop.num_exits = static_cast<uint32_t>(from.exits.size());
    loop.parent = &layout->RegionOf(flow.nodes[from.start].region);
    loop.body = &body;
    loop.start_op = layout->op_of[from.start];
    body.loop = &loop;
    LoopLinker(*layout, from, &loop).Run();
    layout->OpOf(from.start).index = index;
    if (from.next != kNone) layout->OpOf(from.next).index = index;
  }
}

void LinkGates(Layout* layout) {
  std::map<NodeId, std::vector<NodeId>> gates;  // by branch
  for (NodeId id : layout->flow.nodes.ids()) {
    const FlowNode& node = layout->flow.nodes[id];
    if (node.kind == OpKind::kGate && !node.is_removed) gates[node.branch].push_back(id);
  }
  for (const auto& [branch, members] : gates) {
    Region& region = layout->RegionOf(layout->flow.nodes[branch].region);
    Op& op = layout->OpOf(branch);
    op.index = static_cast<uint32_t>(region.gates.size());
    for (NodeId gate : members) {
      region.gates.push_back(layout->op_of[gate]);
      layout->OpOf(gate).index = layout->op_of[branch];
    }
    op.gates_end = static_cast<uint32_t>(region.gates.size());
  }
}

}  // namespace tensorflow_recursion
