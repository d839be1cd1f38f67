// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/make_composite.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/analysis/function_attributes.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/expand/call_nodes.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/memory_types.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow_recursion {

using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;

namespace {

// Collects the _Args, or the _Retvals, of a partition in the order of their index in the step's call frame.
absl::Status CollectBoundary(const Graph& graph, bool args, std::vector<const Node*>* nodes) {
  std::map<int64_t, const Node*> by_index;
  for (const Node* node : graph.op_nodes()) {
    if (args ? !node->IsArg() : !node->IsRetval()) continue;
    int64_t index = 0;
    TFR_RETURN_IF_ERROR(tensorflow::GetNodeAttr(node->attrs(), "index", &index));
    if (!by_index.emplace(index, node).second) {
      return InvalidArgument("Node '", node->name(), "': index ", index, " is taken by '", by_index[index]->name(),
                             "'");
    }
  }
  for (const auto& [index, node] : by_index) nodes->push_back(node);
  return absl::OkStatus();
}

// Numbers boundary nodes by the inputs, or the outputs, of the Run node.
void Renumber(const std::vector<const Node*>& nodes, tensorflow::GraphDef* def) {
  std::map<std::string, int64_t> positions;
  for (size_t i = 0; i < nodes.size(); ++i) positions[nodes[i]->name()] = static_cast<int64_t>(i);
  for (NodeDef& node : *def->mutable_node()) {
    auto position = positions.find(node.name());
    if (position != positions.end()) (*node.mutable_attr())["index"].set_i(position->second);
  }
}

// Tells a Run which of its inputs, or outputs, are in the host's memory: those that the boundary nodes have there.
void AddMemoryTypes(const std::string& device, const std::vector<const Node*>& nodes, NodeDef* run) {
  tensorflow::DeviceNameUtils::ParsedName name;
  if (!tensorflow::DeviceNameUtils::ParseFullName(device, &name)) return;
  std::vector<int32_t> on_host;
  bool is_input = false;
  for (size_t i = 0; i < nodes.size(); ++i) {
    is_input = nodes[i]->IsArg();
    tensorflow::MemoryTypeVector inputs, outputs;
    const absl::Status known = tensorflow::MemoryTypesForNode(
        tensorflow::OpRegistry::Global(), tensorflow::DeviceType(name.type), nodes[i]->def(), &inputs, &outputs);
    if (known.ok() && (is_input ? outputs : inputs)[0] == tensorflow::HOST_MEMORY) {
      on_host.push_back(static_cast<int32_t>(i));
    }
  }
  if (!on_host.empty()) tensorflow::AddNodeAttr(is_input ? kInputsOnHostAttr : kOutputsOnHostAttr, on_host, run);
}

// The partition, serialized, as the kernel of the Run node will see it.
std::string InnerGraph(const Graph& partition, const std::vector<const Node*>& args,
                       const std::vector<const Node*>& retvals) {
  tensorflow::GraphDef inner;
  partition.ToGraphDef(&inner);
  // The kernel uses the library of the session.
  inner.clear_library();
  Renumber(args, &inner);
  Renumber(retvals, &inner);
  return inner.SerializeAsString();
}

// The functions that nodes of the partition name. The Run node has to name them as well, because TensorFlow gives a
// part of a function only the functions that its nodes name.
std::vector<tensorflow::NameAttrList> FunctionsOf(const Graph& partition,
                                                  const tensorflow::FunctionLibraryDefinition& library) {
  std::map<std::string, tensorflow::NameAttrList> functions;
  for (const Node* node : partition.op_nodes()) {
    if (library.Contains(node->type_string())) {
      functions[node->type_string()].set_name(node->type_string());
    }
    for (tensorflow::NameAttrList& function : FunctionsInAttributes(node->def())) {
      functions[function.name()] = std::move(function);
    }
  }
  std::vector<tensorflow::NameAttrList> named;
  named.reserve(functions.size());
  for (auto& [name, function] : functions) named.push_back(std::move(function));
  return named;
}

// The Run node without its graph, which is added later.
NodeDef RunDef(const std::string& device, const std::string& name, const std::vector<const Node*>& args,
               const std::vector<const Node*>& retvals) {
  NodeDef run;
  run.set_name(name);
  run.set_op(kRunOp);
  run.set_device(device);
  tensorflow::DataTypeVector inputs, outputs;
  for (const Node* arg : args) {
    inputs.push_back(arg->output_type(0));
    run.add_input(arg->name());
  }
  for (const Node* retval : retvals) outputs.push_back(tensorflow::BaseType(retval->input_type(0)));
  tensorflow::AddNodeAttr(kArgumentTypesAttr, inputs, &run);
  tensorflow::AddNodeAttr(kResultTypesAttr, outputs, &run);
  AddMemoryTypes(device, args, &run);
  AddMemoryTypes(device, retvals, &run);
  return run;
}

// The settings with which a call is made static where it runs, as text; empty if it is not to be made static.
std::string StaticSettingsOf(const NodeDef& call) {
  bool is_static = false;
  if (!tensorflow::TryGetNodeAttr(call, kStaticAttr, &is_static) || !is_static) return "";
  std::string text = kStaticAttr;
  for (const char* option : {kMaxDepthAttr, kWorkersAttr, kCompileAttr, kOnFallbackOption}) {
    const auto found = call.attr().find(absl::StrCat(kOptionAttrPrefix, option));
    if (found == call.attr().end()) continue;
    absl::StrAppend(&text, " ", option, "=", tensorflow::SummarizeAttrValue(found->second));
  }
  return text;
}

// Whether a function, or one that it reaches, communicates with other devices by an operator of its own.
bool Communicates(const tensorflow::FunctionDef& function, const tensorflow::FunctionLibraryDefinition& library) {
  const tensorflow::FunctionLibraryDefinition reached = library.ReachableDefinitions(function);
  std::vector<std::string> names = reached.ListFunctionNames();
  names.push_back(function.signature().name());
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const auto& nodes = library.Find(name)->node_def();
    return std::any_of(nodes.begin(), nodes.end(), [](const NodeDef& node) {
      const tensorflow::OpDef* op = nullptr;
      const bool is_known = tensorflow::OpRegistry::Global()->LookUpOpDef(node.op(), &op).ok();
      return is_known && op->is_distributed_communication() && FunctionsInAttributes(node).empty();
    });
  });
}

// Whether the node exchanges values with other devices. Receives and collective operators wait for these; sends count,
// too, because a loop with a send tells other devices of each iteration. TensorFlow also says so of
// StatefulPartitionedCall and other operators that run a function, since the function might; these count if it does.
bool TalksToOthers(const Node& node, const tensorflow::FunctionLibraryDefinition& library) {
  if (node.IsSend() || node.IsHostSend()) return true;
  if (!node.op_def().is_distributed_communication()) return false;
  const std::vector<tensorflow::NameAttrList> functions = FunctionsInAttributes(node.def());
  return functions.empty() || std::any_of(functions.begin(), functions.end(), [&](const auto& named) {
           const tensorflow::FunctionDef* const function = library.Find(named.name());
           return function == nullptr || Communicates(*function, library);
         });
}

absl::Status AddNode(const NodeDef& def, const std::string& device, Graph* graph, Node** node) {
  absl::Status status;
  *node = graph->AddNode(def, &status);
  if (status.ok()) (*node)->set_assigned_device_name(device);
  return status;
}

}  // namespace

// A partition with a part of a body or of a call has a FrameStart, or else the Calls of a call that is on one device. A
// partial loop is run by our executor on all its devices, too: TensorFlow's would not tell the other devices in every
// iteration which variables are dead.
bool NeedsOurExecutor(const Graph& partition) {
  const auto nodes = partition.op_nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) {
    return node->type_string() == kCallOp || node->type_string() == kFrameStartOp ||
           node->attrs().Find(kPartialLoopAttr) != nullptr;
  });
}

bool HoldsCallsToMakeStatic(const Graph& partition, const tensorflow::FunctionLibraryDefinition& library) {
  const auto nodes = partition.op_nodes();
  std::set<std::string> settings;
  for (const Node* node : nodes) {
    if (IsInvoke(node->def())) settings.insert(StaticSettingsOf(node->def()));
  }
  return settings.size() == 1 && !settings.begin()->empty() &&
         std::none_of(nodes.begin(), nodes.end(), [&](const Node* node) { return TalksToOthers(*node, library); });
}

absl::Status MakeComposite(const std::string& device, const std::string& name, bool is_of_function,
                           const tensorflow::FunctionLibraryDefinition& library, std::unique_ptr<Graph>* graph) {
  const Graph& partition = **graph;
  std::vector<const Node*> args;
  std::vector<const Node*> retvals;
  TFR_RETURN_IF_ERROR(CollectBoundary(partition, true, &args));
  TFR_RETURN_IF_ERROR(CollectBoundary(partition, false, &retvals));

  auto outer = std::make_unique<Graph>(partition.flib_def());
  outer->set_versions(partition.versions());
  Node* run = nullptr;
  NodeDef def = RunDef(device, name, args, retvals);
  tensorflow::AddNodeAttr(kGraphAttr, InnerGraph(partition, args, retvals), &def);
  const std::vector<tensorflow::NameAttrList> functions = FunctionsOf(partition, library);
  if (!NeedsOurExecutor(partition)) tensorflow::AddNodeAttr(kHoldsCallsAttr, true, &def);
  if (is_of_function) tensorflow::AddNodeAttr(kIsOfFunctionAttr, true, &def);
  if (!functions.empty()) tensorflow::AddNodeAttr(kFunctionsAttr, functions, &def);
  std::vector<Node*> sources;
  for (const Node* arg : args) TFR_RETURN_IF_ERROR(AddNode(arg->def(), device, outer.get(), &sources.emplace_back()));
  TFR_RETURN_IF_ERROR(AddNode(def, device, outer.get(), &run));
  for (size_t i = 0; i < sources.size(); ++i) outer->AddEdge(sources[i], 0, run, static_cast<int>(i));
  for (size_t i = 0; i < retvals.size(); ++i) {
    Node* copy = nullptr;
    TFR_RETURN_IF_ERROR(AddNode(retvals[i]->def(), device, outer.get(), &copy));
    outer->AddEdge(run, static_cast<int>(i), copy, 0);
  }
  tensorflow::FixupSourceAndSinkEdges(outer.get());
  *graph = std::move(outer);
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
