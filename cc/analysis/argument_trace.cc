// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/argument_trace.h"

#include <algorithm>

#include "cc/analysis/node_facts.h"

namespace tensorflow_recursion {
namespace {

// The value outside of a loop that comes into all its iterations at `entry` of its body; nullptr if a variable of the
// loop comes in there, or the value may be dead in an iteration.
const Input* LoopConstant(const FlowGraph& flow, const FlowNode& entry) {
  const FlowLoop* const loop = flow.FindLoop(entry.region);
  if (loop == nullptr || loop->is_partial || loop->crosses_devices) return nullptr;
  if (!entry.node->IsEnter() || !IsLoopConstant(*entry.node)) return nullptr;
  const auto position = std::find(loop->enters.begin(), loop->enters.end(), entry.node);
  return position == loop->enters.end() ? nullptr : &flow.nodes[loop->start].inputs[position - loop->enters.begin()];
}

}  // namespace

ArgumentTrace TraceArgument(const FlowGraph& flow, Source source) {
  ArgumentTrace trace;
  const RegionId reader = flow.nodes[source.node].region;
  while (true) {
    const FlowNode& node = flow.nodes[source.node];
    const Input* next = nullptr;
    if (node.kind == OpKind::kSwitch && node.controls.empty()) {
      // An iteration takes place only where the branches around the loop have been taken.
      if (node.region == reader) trace.guards.push_back({node.branch, source.port});
      next = &node.inputs[0];
    } else if (node.kind == OpKind::kPass && node.inputs.size() == 1 && node.num_ports == 1) {
      if (node.region == reader) trace.guards.insert(trace.guards.end(), node.controls.begin(), node.controls.end());
      next = &node.inputs[0];
    } else if (node.kind == OpKind::kEntry) {
      if (flow.functions.count(node.region) > 0) trace.entry = source.node;
      next = LoopConstant(flow, node);
    }
    if (trace.is_argument() || next == nullptr || !next->is_token()) {
      trace.origin = source;
      return trace;
    }
    trace.between.push_back(source.node);
    source = next->source;
  }
}

}  // namespace tensorflow_recursion
