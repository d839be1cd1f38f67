// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/flow_loops.h"

#include <algorithm>

#include "cc/analysis/node_facts.h"
#include "cc/base/status.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Edge;
using tensorflow::Node;

// Whether the Merge holds a variable of a loop, rather than joining the sides of a branch.
bool HoldsVariable(const Node* merge) {
  return std::any_of(merge->in_edges().begin(), merge->in_edges().end(),
                     [](const Edge* edge) { return edge->src()->IsEnter() || edge->src()->IsNextIteration(); });
}

void AddEnter(const Node* enter, FlowLoop* loop) {
  loop->enters.push_back(enter);
  loop->is_partial = loop->is_partial || IsOfPartialLoop(enter);
}

void AddToLoop(const Node* node, FlowLoop* loop) {
  loop->is_partial = loop->is_partial || IsOfPartialLoop(node);
  if (node->IsNextIteration()) loop->nexts.push_back(node);
  if (node->IsExit()) loop->exits.push_back(node);
  if (node->IsLoopCond()) loop->condition = node;
  if (node->IsMerge() && HoldsVariable(node)) loop->merges.push_back(node);
}

void SortByName(FlowLoop* loop) {
  auto by_name = [](const Node* a, const Node* b) { return a->name() < b->name(); };
  for (auto* nodes : {&loop->enters, &loop->nexts, &loop->merges, &loop->exits}) {
    std::sort(nodes->begin(), nodes->end(), by_name);
  }
}

void MakeEntries(FlowGraph* flow, FlowLoop* loop) {
  auto add_entry = [&](const Node* node) {
    FlowNode entry(OpKind::kEntry, loop->region, node);
    entry.num_ports = 1;
    entry.index = loop->num_entries++;
    entry.is_partial = loop->is_partial;
    return flow->nodes.Add(std::move(entry));
  };
  for (const Node* merge : loop->merges) {
    loop->entries[merge] = add_entry(merge);
    for (const Edge* edge : merge->out_edges()) {
      const bool reads_index = edge->src_output() == 1;
      if (reads_index && loop->index_entries.count(merge) == 0) loop->index_entries[merge] = add_entry(merge);
    }
  }
  for (const Node* enter : loop->enters) {
    for (const Edge* edge : enter->out_edges()) {
      if (loop->entries.count(edge->dst()) > 0 || loop->entries.count(enter) > 0 || edge->dst()->IsSink()) continue;
      loop->entries[enter] = add_entry(enter);
    }
  }
}

void MakeStart(FlowGraph* flow, size_t index) {
  FlowLoop& loop = flow->loops[index];
  const RegionId parent = flow->regions.regions()[loop.region].parent;
  FlowNode start(OpKind::kLoopStart, parent, loop.enters.empty() ? nullptr : loop.enters[0]);
  start.num_ports = static_cast<int>(loop.exits.size());
  start.index = static_cast<uint32_t>(index);
  start.takes_dead = start.is_partial = loop.is_partial;
  loop.start = flow->nodes.Add(std::move(start));
}

// Makes the node that ends an iteration. A loop that never goes round needs none, unless it is partial: then this node
// decides about its Exits.
void MakeNext(FlowGraph* flow, FlowLoop* loop) {
  const auto& ends = loop->nexts.empty() && loop->is_partial ? loop->exits : loop->nexts;
  if (ends.empty()) return;
  FlowNode next(OpKind::kLoopNext, loop->region, ends[0]);
  next.takes_dead = next.is_partial = loop->is_partial;
  loop->next = flow->nodes.Add(std::move(next));
}

}  // namespace

absl::Status CollectLoops(FlowBuilder* builder) {
  FlowGraph& flow = *builder->flow;
  const auto& regions = flow.regions.regions();
  for (RegionId region : regions.ids()) {
    if (regions[region].kind != RegionKind::kLoop) continue;
    flow.loop_of_region[region] = flow.loops.size();
    flow.loops.emplace_back().region = region;
  }
  for (const Node* node : builder->graph.op_nodes()) {
    if (flow.regions.region(node) == kNone) continue;
    if (node->IsEnter()) {
      AddEnter(node, flow.FindLoop(flow.regions.LoopOf(node)));
      continue;
    }
    FlowLoop* const loop = flow.FindLoop(flow.regions.region(node));
    const bool closes = node->IsNextIteration() || node->IsExit();
    if (closes && loop == nullptr) return InvalidArgument("Node '", node->name(), "' stands outside any loop");
    if (loop != nullptr) AddToLoop(node, loop);
  }
  for (FlowLoop& loop : flow.loops) SortByName(&loop);
  return absl::OkStatus();
}

void MakeLoopNodes(FlowGraph* flow) {
  for (size_t i = 0; i < flow->loops.size(); ++i) {
    MakeStart(flow, i);
    MakeNext(flow, &flow->loops[i]);
    MakeEntries(flow, &flow->loops[i]);
  }
}

void FindCrossings(FlowGraph* flow) {
  const auto& regions = flow->regions.regions();
  for (const FlowNode& node : flow->nodes) {
    if (node.kind != OpKind::kSend && !node.may_be_dead) continue;
    flow->crosses_devices = true;
    FlowLoop* loop = flow->FindLoop(node.region);
    while (loop != nullptr) {
      loop->crosses_devices = true;
      flow->nodes[loop->start].takes_dead = true;
      loop = flow->FindLoop(regions[loop->region].parent);
    }
  }
}

}  // namespace tensorflow_recursion
