// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/flow_graph.h"

#include <algorithm>
#include <utility>

#include "cc/analysis/flow_builder.h"
#include "cc/analysis/flow_call_sites.h"
#include "cc/analysis/flow_links.h"
#include "cc/analysis/flow_loops.h"
#include "cc/analysis/flow_nodes.h"
#include "cc/base/status.h"

namespace tensorflow_recursion {

FlowLoop* FlowGraph::FindLoop(RegionId region) {
  const auto position = loop_of_region.find(region);
  return position == loop_of_region.end() ? nullptr : &loops[position->second];
}

const FlowLoop* FlowGraph::FindLoop(RegionId region) const { return const_cast<FlowGraph*>(this)->FindLoop(region); }

bool FlowGraph::ChangesInputs() const {
  return std::any_of(kernels.begin(), kernels.end(), [](const KernelNode& kernel) { return kernel.changes_input; });
}

absl::Status BuildFlowGraph(const tensorflow::Graph& graph, GraphRegions regions, const DeviceMemory& memory,
                            FlowGraph* flow) {
  flow->regions = std::move(regions);
  FlowBuilder builder(graph, memory, flow);
  TFR_RETURN_IF_ERROR(CollectCallSites(&builder));
  TFR_RETURN_IF_ERROR(CollectLoops(&builder));
  MakeLoopNodes(flow);
  TFR_RETURN_IF_ERROR(MakeNodes(&builder));
  TFR_RETURN_IF_ERROR(FinishCallSites(flow));
  FindCrossings(flow);
  return LinkNodes(&builder);
}

// Kahn's algorithm.
absl::Status SortNodes(const FlowGraph& flow, std::vector<NodeId>* order) {
  IdVector<NodeId, int> waiting(flow.nodes.size(), 0);
  IdVector<NodeId, std::vector<NodeId>> consumers(flow.nodes.size());
  for (NodeId id : flow.nodes.ids()) {
    ForEachSource(flow.nodes[id], [&](const Source& source) {
      ++waiting[id];
      consumers[source.node].push_back(id);
    });
  }
  for (NodeId id : flow.nodes.ids()) {
    if (waiting[id] == 0) order->push_back(id);
  }
  for (size_t next = 0; next < order->size(); ++next) {
    for (NodeId consumer : consumers[(*order)[next]]) {
      if (--waiting[consumer] == 0) order->push_back(consumer);
    }
  }
  if (order->size() == flow.nodes.size()) return absl::OkStatus();
  for (NodeId id : flow.nodes.ids()) {
    if (waiting[id] > 0) {
      return InvalidArgument("Node '", flow.nodes[id].node->name(), "' is part of a cycle outside any loop");
    }
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
