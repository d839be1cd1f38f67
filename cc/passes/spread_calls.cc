// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/spread_calls.h"

#include <algorithm>

#include "cc/analysis/call_decision.h"
#include "cc/analysis/regions.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/passes/restore_waits.h"
#include "cc/passes/spread_boundaries.h"
#include "cc/passes/spread_deciders.h"
#include "cc/passes/spread_hosts.h"
#include "cc/passes/spread_keep_alives.h"
#include "cc/passes/spread_marks.h"
#include "cc/passes/spread_nodes.h"
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

}  // namespace

absl::Status SpreadCalls(Graph* graph) {
  if (!AnyNode(*graph, [](const Node* node) { return node->type_string() == kCallOp; })) return absl::OkStatus();
  GraphRegions regions;
  TFR_RETURN_IF_ERROR(regions.Build(*graph));
  MarkOwners(regions, graph);
  RestoreWaits(regions, graph);

  // Where everything is, and who decides.
  Boundaries boundaries;
  TFR_RETURN_IF_ERROR(CollectBoundaries(*graph, regions, &boundaries));
  FindLateArguments(*graph, regions, &boundaries);
  ChooseDeciders(&boundaries);
  AlignCalls(&boundaries);
  FindHosts(*graph, regions, &boundaries);
  const bool is_spread = IsSpread(*graph, regions, boundaries);
  CallLives lives;
  if (is_spread || AnyNode(*graph, [](const Node* node) { return node->IsEnter(); })) lives.Find(*graph, regions);
  MarkPartialLoops(regions, lives, graph);
  if (!is_spread) return absl::OkStatus();

  // What every device needs to run its part.
  TFR_RETURN_IF_ERROR(DropKeepAlives(regions, graph));
  TFR_RETURN_IF_ERROR(CollectReturns(*graph, &boundaries));
  for (const auto& [name, body] : boundaries.bodies) TFR_RETURN_IF_ERROR(SpreadFrameStart(name, body, graph));
  for (const auto& [id, call] : boundaries.calls) {
    TFR_RETURN_IF_ERROR(SpreadCall(id, call, boundaries.bodies.at(call.callee), lives, graph));
  }
  tensorflow::FixupSourceAndSinkEdges(graph);
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
