// SPDX-License-Identifier: Apache-2.0
#include "cc/program/assembler.h"

#include <algorithm>
#include <utility>

#include "cc/base/status.h"
#include "cc/program/dead_paths.h"
#include "cc/program/edge_layout.h"
#include "cc/program/firing.h"
#include "cc/program/frame_layout.h"
#include "cc/program/layout.h"
#include "cc/program/links.h"

namespace tensorflow_recursion {
namespace {

void MakeRegions(const FlowGraph& flow, Program* program) {
  for (const GraphRegions::Region& from : flow.regions.regions()) {
    Region& to = program->regions.emplace_back();
    to.kind = from.kind;
    to.name = from.name;
    to.id = static_cast<uint32_t>(program->regions.size()) - 1;
  }
}

absl::Status AddOp(NodeId id, Layout* layout) {
  const FlowNode& from = layout->flow.nodes[id];
  Region& region = layout->RegionOf(from.region);
  const size_t num_inputs = from.inputs.size() + (from.kind == OpKind::kUnion ? from.controls.size() : 0);
  if (num_inputs > kMaxInputs || from.num_ports >= static_cast<int>(kMaxInputs)) {
    return InvalidArgument("Node '", from.node->name(), "' has ", num_inputs, " inputs and ", from.num_ports,
                           " outputs, the executor takes ", kMaxInputs);
  }
  Op op;
  op.kind = from.kind;
  op.num_inputs = static_cast<uint16_t>(num_inputs);
  op.num_ports = static_cast<uint16_t>(from.num_ports);
  op.port = PortId(region.ports.size());
  op.index = from.index;
  op.scalar = from.scalar;
  op.may_be_dead = from.may_be_dead;
  op.takes_dead = from.takes_dead;
  op.reads_element = from.kind == OpKind::kScalar && from.node->type_string() == "StridedSlice";
  layout->op_of[id] = OpId(region.ops.size());
  layout->nodes_of[from.region].push_back(id);
  layout->program->max_inputs = std::max(layout->program->max_inputs, num_inputs);
  if (op.kind == OpKind::kBranch || op.kind == OpKind::kSwitch || op.kind == OpKind::kSwitchN) {
    region.deciding_nodes[layout->op_of[id]] = from.node->name();
  }
  region.ops.push_back(op);
  region.ports.resize(region.ports.size() + from.num_ports + 1);
  return absl::OkStatus();
}

absl::Status AddOps(bool fires, bool is_counted, Layout* layout) {
  for (NodeId id : layout->flow.nodes.ids()) {
    const FlowNode& node = layout->flow.nodes[id];
    if (Fires(node.kind) != fires || IsCounted(node) != is_counted || node.is_removed) continue;
    TFR_RETURN_IF_ERROR(AddOp(id, layout));
  }
  return absl::OkStatus();
}

// Operators with a pending count come first, so that operator i has count i. Then come the others that fire.
absl::Status NumberOps(Layout* layout) {
  std::deque<Region>& regions = layout->program->regions;
  TFR_RETURN_IF_ERROR(AddOps(/*fires=*/true, /*is_counted=*/true, layout));
  for (Region& region : regions) region.num_counted = static_cast<uint32_t>(region.ops.size());
  TFR_RETURN_IF_ERROR(AddOps(/*fires=*/true, /*is_counted=*/false, layout));
  for (Region& region : regions) region.num_firing = static_cast<uint32_t>(region.ops.size());
  return AddOps(/*fires=*/false, /*is_counted=*/false, layout);
}

SwitchesByBranch FindSwitches(const Layout& layout, RegionId region) {
  SwitchesByBranch switches;
  for (NodeId id : layout.nodes_of[region]) {
    const FlowNode& node = layout.flow.nodes[id];
    if (node.kind != OpKind::kSwitch && node.kind != OpKind::kGate) continue;
    switches[layout.op_of[node.branch]].push_back(layout.op_of[id]);
  }
  return switches;
}

void FindAllDeaths(Layout* layout) {
  for (RegionId region : layout->flow.regions.regions().ids()) {
    FindDeaths(FindSwitches(*layout, region), &layout->RegionOf(region));
  }
}

}  // namespace

absl::Status Assemble(FlowGraph flow, Program* program) {
  program->constants = std::move(flow.constants);
  program->kernels = std::move(flow.kernels);
  program->records = std::move(flow.records);
  program->argument_types = std::move(flow.argument_types);
  program->retval_types = std::move(flow.retval_types);
  SpecializeNodes(&flow);
  MakeRegions(flow, program);
  Layout layout(flow, program);
  TFR_RETURN_IF_ERROR(NumberOps(&layout));
  TFR_RETURN_IF_ERROR(LinkCallSites(&layout));
  LinkLoops(&layout);
  TFR_RETURN_IF_ERROR(PlaceEdges(&layout));
  LinkGates(&layout);
  FindAllDeaths(&layout);
  PlaceFrames(&layout);
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
