// SPDX-License-Identifier: Apache-2.0
#include "cc/program/edge_layout.h"

#include <vector>

#include "cc/base/status.h"
#include "cc/program/firing.h"

namespace tensorflow_recursion {
namespace {

// The edges out of a port, as long as they are collected: later those of a region lie one after the other.
struct PortEdges {
  std::vector<Edge> data;
  std::vector<Edge> controls;
};

using EdgesByPort = std::vector<PortEdges>;

absl::Status CheckInputs(const FlowGraph& flow, const FlowNode& node) {
  for (const Input& input : node.inputs) {
    if (!input.is_token()) continue;
    const FlowNode& from = flow.nodes[input.source.node];
    if (from.region == node.region && input.source.port < from.num_ports) continue;
    return InvalidArgument("Node '", node.node->name(), "' reads output ", input.source.port, " of '",
                           from.node->name(), "', which has none of that number in its region");
  }
  for (const Source& control : node.controls) {
    if (flow.nodes[control.node].region == node.region) continue;
    return InvalidArgument("Node '", node.node->name(), "' waits for a node of another region");
  }
  return absl::OkStatus();
}

void PlaceInputs(const Layout& layout, NodeId id, EdgesByPort* edges) {
  const FlowNode& node = layout.flow.nodes[id];
  // A gate learns of its predicate from its branch.
  const size_t num_placed = node.kind == OpKind::kGate ? 1 : node.inputs.size();
  for (size_t position = 0; position < num_placed; ++position) {
    const Input& input = node.inputs[position];
    if (!input.is_token()) continue;
    const uint32_t port = layout.OpOf(input.source.node).port + input.source.port;
    (*edges)[port].data.push_back({layout.op_of[id], SlotId(), static_cast<uint16_t>(position), EdgeKindInto(node)});
  }
}

void PlaceControls(const Layout& layout, NodeId id, EdgesByPort* edges) {
  const FlowNode& node = layout.flow.nodes[id];
  EdgeKind kind = WaitsForOne(node) ? EdgeKind::kOnly : EdgeKind::kControl;
  if (node.kind == OpKind::kUnion) kind = EdgeKind::kUnion;
  auto bit = static_cast<uint16_t>(node.inputs.size());  // only a union reads it
  for (const Source& control : node.controls) {
    const Op& source = layout.OpOf(control.node);
    const uint32_t port = control.port == Source::kWholeNode ? source.num_ports : static_cast<uint32_t>(control.port);
    (*edges)[source.port + port].controls.push_back({layout.op_of[id], SlotId(), bit++, kind});
  }
}

void LayOut(const EdgesByPort& edges, Region* region) {
  auto end = [region] { return static_cast<uint32_t>(region->edges.size()); };
  for (size_t i = 0; i < region->ports.size(); ++i) {
    Port& port = region->ports[i];
    port.begin = end();
    region->edges.insert(region->edges.end(), edges[i].data.begin(), edges[i].data.end());
    port.controls = end();
    region->edges.insert(region->edges.end(), edges[i].controls.begin(), edges[i].controls.end());
    port.end = end();
  }
}

// Tells the operators what they have to know of their own edges, when all are in place.
void DescribeEdges(Region* region) {
  for (Op& op : region->ops) {
    const Port& control = region->ports[op.port + op.num_ports];
    op.has_controls = control.begin != control.end;
    if (op.kind != OpKind::kMerge) continue;
    const Port& position = region->ports[op.port + 1];
    op.lets_first_through = op.num_tokens == 1 && !op.has_controls && position.begin == position.end &&
                            op.num_inputs <= kMaxFirstThroughInputs;
  }
}

}  // namespace

absl::Status PlaceEdges(Layout* layout) {
  IdVector<RegionId, EdgesByPort> edges(layout->flow.regions.regions().size());
  for (RegionId region : edges.ids()) edges[region].resize(layout->RegionOf(region).ports.size());
  for (NodeId id : layout->flow.nodes.ids()) {
    const FlowNode& node = layout->flow.nodes[id];
    if (node.is_removed) continue;
    TFR_RETURN_IF_ERROR(CheckInputs(layout->flow, node));
    PlaceInputs(*layout, id, &edges[node.region]);
    PlaceControls(*layout, id, &edges[node.region]);
    if (Fires(node.kind)) layout->OpOf(id).num_tokens = static_cast<uint32_t>(NumTokens(node));
  }
  for (RegionId region : edges.ids()) {
    LayOut(edges[region], &layout->RegionOf(region));
    DescribeEdges(&layout->RegionOf(region));
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
