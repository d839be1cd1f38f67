// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/spread_calls.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "cc/analysis/call_decisions.h"
#include "cc/analysis/flow_graph.h"
#include "cc/analysis/regions.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/expand/branch_inputs.h"
#include "cc/passes/restore_waits.h"
#include "cc/passes/spread_boundaries.h"
#include "cc/passes/spread_deciders.h"
#include "cc/passes/spread_hosts.h"
#include "cc/passes/spread_keep_alives.h"
#include "cc/passes/spread_marks.h"
#include "cc/passes/spread_nodes.h"
#include "cc/values/device_memory.h"
#include "tensorflow/core/graph/algorithm.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Graph;
using tensorflow::Node;

template <typename Predicate>
bool AnyNode(const Graph& graph, Predicate predicate) {
  const auto nodes = graph.op_nodes();
  return std::any_of(nodes.begin(), nodes.end(), predicate);
}

// The flow graph of a graph whose regions are known. It is built when it is first asked for, because a graph without
// loops on one device needs none. It says nothing of devices, so the caller may move nodes meanwhile.
class WholeFlow {
 public:
  // Both must outlive it.
  WholeFlow(const Graph& graph, const GraphRegions& regions) : graph_(graph), regions_(regions) {}

  // Returns nullptr if the graph is not a valid program. The fault is reported where the graph is made a program.
  FlowGraph* Get() {
    if (!flow_.has_value()) is_valid_ = BuildFlowGraph(graph_, regions_, DeviceMemory(), &flow_.emplace()).ok();
    return is_valid_ ? &*flow_ : nullptr;
  }

 private:
  const Graph& graph_;
  const GraphRegions& regions_;
  std::optional<FlowGraph> flow_;
  bool is_valid_ = false;
};

}  // namespace

absl::Status SpreadCalls(Graph* graph) {
  TFR_RETURN_IF_ERROR(RemoveBranchInputs(graph));
  if (!AnyNode(*graph, [](const Node* node) { return node->type_string() == kCallOp; })) return absl::OkStatus();
  GraphRegions regions;
  TFR_RETURN_IF_ERROR(regions.Build(*graph));
  MarkOwners(regions, graph);
  RestoreWaits(regions, graph);

  // Find out where everything is, and choose who decides.
  Boundaries boundaries;
  TFR_RETURN_IF_ERROR(CollectBoundaries(*graph, regions, &boundaries));
  TFR_RETURN_IF_ERROR(VerifyReturns(boundaries));
  WholeFlow whole(*graph, regions);
  if (HasSplitArguments(boundaries) && whole.Get() != nullptr) FindLateArguments(*whole.Get(), &boundaries);
  ChooseDeciders(&boundaries);
  AlignCalls(&boundaries);
  FindHosts(*graph, regions, &boundaries);
  const bool is_spread = IsSpread(*graph, regions, boundaries);
  CallDecisions decisions;
  if (is_spread || AnyNode(*graph, [](const Node* node) { return node->IsEnter(); })) {
    if (FlowGraph* const flow = whole.Get()) decisions.Find(std::move(*flow));
  }
  MarkPartialLoops(regions, decisions, graph);
  if (!is_spread) return absl::OkStatus();

  // Give every device what it needs to run its part.
  TFR_RETURN_IF_ERROR(DropKeepAlives(regions, graph));
  TFR_RETURN_IF_ERROR(CollectReturns(*graph, &boundaries));
  for (const auto& [name, body] : boundaries.bodies) TFR_RETURN_IF_ERROR(SpreadFrameStart(name, body, graph));
  for (const auto& [id, call] : boundaries.calls) {
    TFR_RETURN_IF_ERROR(SpreadCall(id, call, boundaries.bodies.at(call.callee), decisions, graph));
  }
  tensorflow::FixupSourceAndSinkEdges(graph);
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
