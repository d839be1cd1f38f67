// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/expand_left_calls_pass.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/expand/expand_calls.h"
#include "cc/passes/dynamic_calls.h"
#include "cc/passes/recursion_optimizer.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Graph;
using tensorflow::GraphDef;
using tensorflow::Node;

// The names of nodes that no other node reads. They are what the step asks for: fetches, targets, sends.
std::vector<std::string> LastNodes(const Graph& graph) {
  std::vector<std::string> names;
  for (const tensorflow::Edge* edge : graph.sink_node()->in_edges()) {
    if (edge->src()->IsOp()) names.push_back(edge->src()->name());
  }
  return names;
}

absl::Status MakeGraph(GraphDef def, const Graph& original, std::unique_ptr<Graph>* graph) {
  auto made = std::make_unique<Graph>(original.flib_def());
  def.clear_library();
  tensorflow::GraphConstructorOptions options;
  options.allow_internal_ops = true;
  TFR_RETURN_IF_ERROR(ConvertGraphDefToGraph(options, std::move(def), made.get()));
  for (Node* node : made->op_nodes()) node->set_assigned_device_name(node->requested_device());
  *graph = std::move(made);
  return absl::OkStatus();
}

bool AreHere(const tensorflow::DeviceSet* devices) {
  return devices == nullptr || std::all_of(devices->devices().begin(), devices->devices().end(),
                                           [](const tensorflow::Device* device) { return device->IsLocal(); });
}

// Transforms the calls in *graph. Fails if there are several processes: the calls are placed by now, and a forward and
// a backward call in different processes can't share a record.
absl::Status Expand(const tensorflow::GraphOptimizationPassOptions& pass,
                    const tensorflow::RewriterConfig_CustomGraphOptimizer& entry, std::unique_ptr<Graph>* graph) {
  if (!AreHere(pass.device_set)) {
    return absl::FailedPreconditionError(
        "it was not transformed before its calls were placed on several processes; the log of the process that "
        "prepares the graph says why ('function_transformation failed')");
  }
  GraphDef def, expanded;
  (*graph)->ToGraphDef(&def, /*include_flib_def=*/false);
  *def.mutable_library() = pass.flib_def->ReachableDefinitions(def).ToProto();
  ExpandOptions options;
  options.is_cut = true;
  if (!HasExpandableCalls(def, options.is_cut)) return absl::OkStatus();
  options.fetches = LastNodes(**graph);
  TFR_RETURN_IF_ERROR(ReadOptions(entry, &options.run));
  options.placement.devices = pass.device_set;
  options.placement.allow_soft_placement = pass.session_options->config.allow_soft_placement();
  TFR_RETURN_IF_ERROR(ExpandCalls(def, options, &expanded));
  return MakeGraph(std::move(expanded), **graph, graph);
}

}  // namespace

absl::Status ExpandLeftCallsPass::Run(const tensorflow::GraphOptimizationPassOptions& options) {
  if (options.graph == nullptr || options.flib_def == nullptr || options.session_options == nullptr ||
      options.is_function_graph) {
    return absl::OkStatus();
  }
  const DynamicCalls calls = FindDynamicCalls(**options.graph, *options.flib_def);
  if (calls.empty()) return absl::OkStatus();
  const tensorflow::ConfigProto& config = options.session_options->config;
  const auto* entry = FindEntry(config);
  if (entry == nullptr) {
    TellOfNoSwitch(calls, options.device_set);
    return absl::OkStatus();
  }
  OnFallback on_fallback = OnFallback::kWarn;
  TFR_RETURN_IF_ERROR(ReadOnFallback(*entry, &on_fallback));
  if (FindSwitch(config) == nullptr) {
    const absl::Status off = absl::FailedPreconditionError(
        "rewrite_options.disable_meta_optimizer is set in the session's configuration, which turns all optimizers off");
    return TellOfFallback(calls, off, on_fallback, options.device_set);
  }
  const absl::Status expanded = Expand(options, *entry, options.graph);
  TFR_RETURN_IF_ERROR(LeaveNestedCallsToKernels(**options.graph, *entry, options.flib_def));
  const DynamicCalls left = FindDynamicCalls(**options.graph, *options.flib_def);
  return TellOfFallback(left, expanded, on_fallback, options.device_set);
}

}  // namespace tensorflow_recursion
