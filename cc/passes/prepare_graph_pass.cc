// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/prepare_graph_pass.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/expand/call_nodes.h"
#include "cc/expand/handle_stand_ins.h"
#include "cc/expand/keep_waits.h"
#include "cc/expand/name_table.h"
#include "cc/expand/placement.h"
#include "cc/expand/verify_devices.h"
#include "cc/passes/recursion_optimizer.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionLibraryDefinition;
using tensorflow::Graph;
using tensorflow::Node;

// The number of nodes that Grappler uses when RewriterConfig.min_graph_nodes is 0.
constexpr int kDefaultMinGraphNodes = 4;
// A session that would need more padding than this does not want Grappler; ExpandLeftCallsPass transforms its calls.
constexpr int kMostPadding = 64;

// Notes whether placement is soft, which a call's kernel cannot find out: the runtime only tells it what was set when
// the process began.
void NoteSoftPlacement(const tensorflow::ConfigProto& config, const std::vector<Node*>& calls) {
  for (Node* call : calls) call->AddAttr(kSoftPlacementAttr, config.allow_soft_placement());
}

void MarkTakenNames(const Graph& graph, const FunctionLibraryDefinition& library, const std::vector<Node*>& calls) {
  std::vector<std::string> names;
  for (const Node* node : graph.op_nodes()) names.push_back(node->name());
  const std::vector<std::string> taken = TakenNames(names, library.ToProto());
  if (taken.empty()) return;
  for (Node* call : calls) call->AddAttr(kTakenNamesAttr, taken);
}

// Notes which calls the user has given a device. Grappler sees where a call has been placed, not whether the user asked
// for that.
void MarkPinned(const std::vector<Node*>& calls) {
  for (Node* call : calls) {
    if (AsksForType(call->requested_device())) call->AddAttr(kPinnedAttr, true);
  }
}

// Whether anything but the call of a gradient reads the record of a call.
bool IsRecordHandedOn(const Node& call) {
  return std::any_of(call.out_edges().begin(), call.out_edges().end(), [&call](const tensorflow::Edge* edge) {
    return edge->src_output() == call.num_outputs() - 1 && edge->dst()->type_string() != kInvokeOp;
  });
}

// Lets a call name its forward function, where its record is handed on, so that Grappler keeps that in the graph's
// function library. The gradient's call names it as well, but may not be among what is fetched: a loop of control flow
// v1 pushes the record on a stack for all gradients as soon as one of them is fetched.
void NameForwardFunctions(const FunctionLibraryDefinition& library, const std::vector<Node*>& calls) {
  for (Node* call : calls) {
    std::string forward;
    const bool has_forward = GetNodeAttr(call->attrs(), kForwardAttr, &forward).ok() && library.Contains(forward);
    std::vector<tensorflow::NameAttrList> named;
    if (!has_forward || !IsRecordHandedOn(*call)) continue;
    if (!GetNodeAttr(call->attrs(), kRecordOfAttr, &named).ok()) continue;
    named.emplace_back().set_name(forward);
    call->ClearAttr(kRecordOfAttr);
    call->AddAttr(kRecordOfAttr, named);
  }
}

absl::Status Pad(int min_nodes, Graph* graph) {
  if (min_nodes - graph->num_op_nodes() > kMostPadding) return absl::OkStatus();
  while (graph->num_op_nodes() < min_nodes) {
    tensorflow::NodeDef def;
    def.set_op("NoOp");
    def.set_name(graph->NewName(kPaddingNodeName));
    absl::Status status;
    Node* node = graph->AddNode(def, &status);
    TFR_RETURN_IF_ERROR(status);
    graph->AddControlEdge(graph->source_node(), node);
    graph->AddControlEdge(node, graph->sink_node());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PrepareGraph(const tensorflow::ConfigProto& config, const FunctionLibraryDefinition& library,
                          Graph* graph) {
  const auto* entry = FindSwitch(config);
  if (entry == nullptr) return absl::OkStatus();
  const std::vector<Node*> calls = FindInvokes(*graph);
  if (calls.empty() || IsFunctionGraph(*graph)) return absl::OkStatus();
  Options ignored;
  TFR_RETURN_IF_ERROR(ReadOptions(*entry, &ignored));
  MarkTakenNames(*graph, library, calls);
  MarkPinned(calls);
  NameForwardFunctions(library, calls);
  TFR_RETURN_IF_ERROR(KeepWaits(graph));
  const int min_nodes = config.graph_options().rewrite_options().min_graph_nodes();
  return Pad(min_nodes == 0 ? kDefaultMinGraphNodes : min_nodes, graph);
}

absl::Status PrepareGraphPass::Run(const tensorflow::GraphOptimizationPassOptions& options) {
  if (options.session_options == nullptr || options.graph == nullptr || options.flib_def == nullptr) {
    return absl::OkStatus();
  }
  const tensorflow::ConfigProto& config = options.session_options->config;
  Graph* const graph = options.graph->get();
  if (!options.is_function_graph) TFR_RETURN_IF_ERROR(PrepareGraph(config, *options.flib_def, graph));
  const std::vector<Node*> calls = FindInvokes(*graph);
  if (options.device_set == nullptr || calls.empty()) return absl::OkStatus();
  TFR_RETURN_IF_ERROR(VerifyDevices(*graph, *options.flib_def, *options.device_set, config.allow_soft_placement()));
  if (options.is_function_graph) NoteSoftPlacement(config, calls);
  const bool is_transformed = !options.is_function_graph && FindSwitch(config) != nullptr && !IsFunctionGraph(*graph);
  return is_transformed && options.device_set->devices().size() > 1 ? DetachHandles(graph) : absl::OkStatus();
}

}  // namespace tensorflow_recursion
