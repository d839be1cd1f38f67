// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/static_graph.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/expand/branch_inputs.h"
#include "cc/expand/expand_calls.h"
#include "cc/passes/shield_bodies_pass.h"
#include "cc/passes/spread_calls.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/tensor_id.h"
#include "tensorflow/core/grappler/grappler_item.h"
#include "tensorflow/core/grappler/optimizers/meta_optimizer.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataTypeVector;
using tensorflow::FunctionLibraryRuntime;
using tensorflow::Graph;
using tensorflow::GraphDef;
using tensorflow::Node;
using tensorflow::NodeDef;

NodeDef Boundary(const char* op, int index, tensorflow::DataType type, const NodeDef& call) {
  NodeDef node;
  node.set_op(op);
  node.set_name(absl::StrCat(kBoundaryNodePrefix, op, "_", index));
  node.set_device(call.device());
  tensorflow::AddNodeAttr(kTypeAttr, type, &node);
  tensorflow::AddNodeAttr(kIndexAttr, index, &node);
  return node;
}

// The call as a node of such a graph, with the attributes of its schema: others of the user's graph mean nothing there.
NodeDef PlainCall(const NodeDef& original, const std::string& device) {
  NodeDef call;
  call.set_name(original.name());
  call.set_op(kInvokeOp);
  call.set_device(device);
  for (const char* name :
       {kCalleeAttr, kArgumentTypesAttr, kResultTypesAttr, kOutputShapesAttr, kInputsOnHostAttr, kOutputsOnHostAttr}) {
    const auto found = original.attr().find(name);
    if (found != original.attr().end()) (*call.mutable_attr())[name] = found->second;
  }
  return call;
}

absl::Status MakeGraph(GraphDef def, const tensorflow::FunctionLibraryDefinition& library,
                       std::unique_ptr<Graph>* graph) {
  def.clear_library();
  auto made = std::make_unique<Graph>(library);
  tensorflow::GraphConstructorOptions options;
  options.allow_internal_ops = true;
  TFR_RETURN_IF_ERROR(ConvertGraphDefToGraph(options, std::move(def), made.get()));
  for (Node* node : made->op_nodes()) node->set_assigned_device_name(node->requested_device());
  *graph = std::move(made);
  return absl::OkStatus();
}

// The configuration of the runtime, with a few changes. One iteration is enough, because bodies are in the graph
// already. Functions stay as they are, because those of the runtime's library are run. The passes of TFG convert the
// graph and back without finding anything to do, in a time that grows faster than the graph.
tensorflow::ConfigProto OptimizerConfig(FunctionLibraryRuntime* library, bool fuses) {
  tensorflow::ConfigProto config;
  if (library->config_proto() != nullptr) config = *library->config_proto();
  tensorflow::RewriterConfig* const rewrites = config.mutable_graph_options()->mutable_rewrite_options();
  rewrites->set_meta_optimizer_iterations(tensorflow::RewriterConfig::ONE);
  rewrites->set_function_optimization(tensorflow::RewriterConfig::OFF);
  rewrites->set_min_graph_nodes(-1);
  rewrites->set_disable_tfg_optimizer(true);
  if (!fuses) rewrites->set_remapping(tensorflow::RewriterConfig::OFF);
  rewrites->clear_custom_optimizers();
  return config;
}

// Runs TensorFlow's optimizers over the graph. If they fail, the graph stays as it is, as in a session.
void Optimize(const MainGraph& main, const tensorflow::DeviceSet& devices, FunctionLibraryRuntime* library, bool fuses,
              std::unique_ptr<Graph>* graph) {
  tensorflow::Device* cpu = nullptr;
  (void)library->device_mgr()->LookupDevice("CPU:0", &cpu);
  tensorflow::grappler::GrapplerItem::OptimizationOptions options;
  options.optimize_function_library = false;
  tensorflow::FunctionLibraryDefinition functions = (*graph)->flib_def();
  const absl::Status status =
      tensorflow::grappler::OptimizeGraph(main.fetches, main.arguments, &functions, devices, cpu,
                                          OptimizerConfig(library, fuses), kStaticGraphName, options, graph);
  if (!status.ok()) LOG(WARNING) << "A static graph of a call is not optimized: " << status;
}

}  // namespace

absl::Status MakeMainGraph(const NodeDef& original, const std::string& device, MainGraph* result) {
  NodeDef call = PlainCall(original, device);
  DataTypeVector arguments, results;
  TFR_RETURN_IF_ERROR(tensorflow::GetNodeAttr(call, kArgumentTypesAttr, &arguments));
  TFR_RETURN_IF_ERROR(tensorflow::GetNodeAttr(call, kResultTypesAttr, &results));
  for (size_t i = 0; i < arguments.size(); ++i) {
    NodeDef argument = Boundary("_Arg", static_cast<int>(i), arguments[i], call);
    call.add_input(argument.name());
    result->arguments.push_back(argument.name());
    *result->graph.add_node() = std::move(argument);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    NodeDef value = Boundary("_Retval", static_cast<int>(i), results[i], call);
    value.add_input(absl::StrCat(call.name(), ":", i));
    result->fetches.push_back(value.name());
    *result->graph.add_node() = std::move(value);
  }
  if (results.empty()) result->fetches.push_back(call.name());
  *result->graph.add_node() = std::move(call);
  return absl::OkStatus();
}

void MakeMainGraph(GraphDef partition, MainGraph* result) {
  std::set<std::string> read;
  for (const NodeDef& node : partition.node()) {
    if (node.op() == "_Arg") result->arguments.push_back(node.name());
    for (const std::string& input : node.input()) read.emplace(tensorflow::ParseTensorName(input).node());
  }
  for (const NodeDef& node : partition.node()) {
    if (read.count(node.name()) == 0) result->fetches.push_back(node.name());
  }
  result->graph = std::move(partition);
}

absl::Status MakeStaticGraph(MainGraph main, FunctionLibraryRuntime* library, const Options& options,
                             bool allow_soft_placement, std::unique_ptr<Graph>* graph) {
  const auto functions = library->GetFunctionLibraryDefinition()->ReachableDefinitions(main.graph);
  *main.graph.mutable_library() = functions.ToProto();
  main.graph.mutable_versions()->set_producer(library->graph_def_version());

  tensorflow::DeviceSet devices;
  for (tensorflow::Device* known : library->device_mgr()->ListDevices()) devices.AddDevice(known);
  devices.set_client_device(library->device());
  ExpandOptions expansion;
  expansion.is_cut = true;
  expansion.fetches = main.fetches;
  expansion.run = options;
  expansion.placement.devices = &devices;
  expansion.placement.allow_soft_placement = allow_soft_placement;
  // TensorFlow fuses some operators for oneDNN's rewriter, which does not see this graph: they stay apart then.
  for (const bool fuses : {true, false}) {
    GraphDef expanded;
    TFR_RETURN_IF_ERROR(ExpandCalls(main.graph, expansion, &expanded));
    TFR_RETURN_IF_ERROR(MakeGraph(std::move(expanded), functions, graph));
    TFR_RETURN_IF_ERROR(AddBranchInputs(graph->get()));
    Optimize(main, devices, library, fuses, graph);
    if (!absl::c_any_of((*graph)->op_nodes(), [](const Node* node) { return IsForOneDnnAlone(*node); })) break;
  }
  return SpreadCalls(graph->get());
}

}  // namespace tensorflow_recursion
