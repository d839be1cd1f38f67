// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/verify.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/base/tensorflow_compat.h"
#include "cc/expand/call_graph.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataType;
using tensorflow::DataTypeString;
using tensorflow::DataTypeVector;
using tensorflow::NodeDef;
using tensorflow::OpDef;

std::string Describe(const NodeDef& invoke) {
  return absl::StrCat("Call of '", CalleeOf(invoke), "' (node '", invoke.name(), "')");
}

// `what` is "argument" or "output", `verb` what the function does with it.
absl::Status VerifyTypes(const NodeDef& invoke, const DataTypeVector& given,
                         const google::protobuf::RepeatedPtrField<OpDef::ArgDef>& expected, const char* what,
                         const char* verb) {
  if (static_cast<int>(given.size()) != expected.size()) {
    return InvalidArgument(Describe(invoke), ": the call has ", given.size(), " ", what, "s, the function ", verb, " ",
                           expected.size());
  }
  for (int i = 0; i < expected.size(); ++i) {
    const OpDef::ArgDef& arg = expected[i];
    if (arg.type() == tensorflow::DT_INVALID) {
      return InvalidArgument(Describe(invoke), ": ", what, " ", i, " ('", arg.name(), "') has no fixed type");
    }
    if (arg.type() != given[i] || arg.is_ref()) {
      return InvalidArgument(Describe(invoke), ": ", what, " ", i, " ('", arg.name(), "') is ",
                             DataTypeString(given[i]), ", the function ", verb, " ", DataTypeString(arg.type()),
                             arg.is_ref() ? "_ref" : "");
    }
  }
  return absl::OkStatus();
}

absl::Status FindOp(const NodeDef& node, const tensorflow::FunctionLibraryDefinition& library, const OpDef** op) {
  const absl::Status status = library.LookUpOpDef(node.op(), op);
  return status.ok() ? status : InvalidArgument("Node '", node.name(), "': ", status.message());
}

// More inputs or outputs than any real node has; fewer than a forged number that exhausts memory.
constexpr int64_t kMaxListLength = 1 << 20;

absl::Status VerifyLengths(const NodeDef& node, const OpDef& op) {
  for (const auto* args : {&op.input_arg(), &op.output_arg()}) {
    for (const OpDef::ArgDef& arg : *args) {
      const auto length = node.attr().find(arg.number_attr());
      if (length != node.attr().end() && length->second.i() > kMaxListLength) {
        return InvalidArgument("Node '", node.name(), "' (", node.op(), "): attribute ", arg.number_attr(), " is ",
                               length->second.i(), ", at most ", kMaxListLength, " makes sense");
      }
    }
  }
  return absl::OkStatus();
}

bool TakesAttributes(const tensorflow::AttrValue& value, const tensorflow::FunctionLibraryDefinition& library) {
  const tensorflow::FunctionDef* function = library.Find(value.func().name());
  return function != nullptr && function->signature().attr_size() > 0;
}

absl::Status VerifyLoweringOf(const NodeDef& node, const tensorflow::FunctionLibraryDefinition& library) {
  if (!IsMarkedForLowering(node) || FindExpandable(node, library).kind != Expansion::kNone) return absl::OkStatus();
  for (const auto& [name, value] : node.attr()) {
    if (TakesAttributes(value, library)) return absl::OkStatus();  // what fits is known only to the instance
  }
  return InvalidArgument("Node '", node.name(), "' (", node.op(),
                         "): its functions are missing or do not fit its inputs and outputs");
}

absl::Status VerifyAttributes(const NodeDef& node, const OpDef& op) {
  for (const OpDef::AttrDef& attr : op.attr()) {
    const auto value = node.attr().find(attr.name());
    if (value == node.attr().end()) {
      if (attr.has_default_value()) continue;
      return InvalidArgument("Node '", node.name(), "' (", node.op(), "): attribute ", attr.name(), " is missing");
    }
    if (value->second.value_case() == tensorflow::AttrValue::kPlaceholder) continue;  // known to the instance
    const absl::Status status = tensorflow::AttrValueHasType(value->second, attr.type());
    if (!status.ok()) {
      return InvalidArgument("Node '", node.name(), "' (", node.op(), "): attribute ", attr.name(), ": ",
                             status.message());
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyFunctionNode(const NodeDef& node, const tensorflow::FunctionLibraryDefinition& library) {
  const OpDef* op = nullptr;
  if (!FindOp(node, library, &op).ok()) return absl::OkStatus();  // TensorFlow's own checks get that far
  TFR_RETURN_IF_ERROR(VerifyLengths(node, *op));
  TFR_RETURN_IF_ERROR(VerifyAttributes(node, *op));
  return VerifyLoweringOf(node, library);
}

// The definition, with an input for each that the node has: the edges count, not what the definition remembers.
NodeDef WithEdges(const tensorflow::Node& node) {
  NodeDef definition = node.def();
  definition.clear_input();
  for (int i = 0; i < node.num_inputs(); ++i) definition.add_input("edge");
  return definition;
}

absl::Status VerifyNode(NodeDef node, const OpDef& op) {
  tensorflow::AddDefaultsToNodeDef(op, &node);
  const absl::Status status = tensorflow::ValidateNodeDef(node, op);
  return status.ok() ? status : InvalidArgument(status.message());
}

int DataInputs(const NodeDef& node) {
  int count = 0;
  for (const std::string& input : node.input()) count += input.empty() || input[0] != '^';
  return count;
}

// Attributes of one Entry, Result, Call or Return.
struct Port {
  std::string function;
  int64_t index = 0;
  int64_t call_id = 0;
  DataType type = tensorflow::DT_INVALID;
};

absl::Status ReadPort(const NodeDef& node, bool has_call_id, Port* port) {
  const bool complete = TryGetNodeAttr(node, kFunctionAttr, &port->function) &&
                        TryGetNodeAttr(node, kIndexAttr, &port->index) &&
                        TryGetNodeAttr(node, kTypeAttr, &port->type) &&
                        (!has_call_id || TryGetNodeAttr(node, kCallIdAttr, &port->call_id));
  if (!complete) return InvalidArgument("Node '", node.name(), "' (", node.op(), "): an attribute is missing");
  if (port->index < 0) return InvalidArgument("Node '", node.name(), "': index is ", port->index, ", not 0 or more");
  if (has_call_id && port->call_id < 1) {
    return InvalidArgument("Node '", node.name(), "': call_id is ", port->call_id, ", not 1 or more");
  }
  return absl::OkStatus();
}

// Collects what a graph defines (entries, results) and uses (calls, returns), then matches the two.
class ExpandedCalls {
 public:
  absl::Status Add(const NodeDef& node) {
    if (node.op() == kEntryOp) return Define(node, &entries_);
    if (node.op() == kResultOp) return Define(node, &results_);
    if (node.op() == kCallOp) return Use(node, &calls_);
    if (node.op() == kReturnOp) return Use(node, &returns_);
    if (node.op() == kFrameStartOp) return AddFrameStart(node);
    return absl::OkStatus();
  }

  absl::Status Match() const {
    TFR_RETURN_IF_ERROR(MatchUses(calls_, entries_, "argument"));
    return MatchUses(returns_, results_, "output");
  }

 private:
  struct Definition {
    const NodeDef* node;
    DataType type;
  };
  struct User {
    const NodeDef* node;
    Port port;
  };
  using Definitions = std::map<std::pair<std::string, int64_t>, Definition>;
  using Users = std::map<std::pair<int64_t, int64_t>, User>;  // by call_id, index

  absl::Status Define(const NodeDef& node, Definitions* definitions) {
    Port port;
    TFR_RETURN_IF_ERROR(ReadPort(node, /*has_call_id=*/false, &port));
    const auto added = definitions->emplace(std::make_pair(port.function, port.index), Definition{&node, port.type});
    if (added.second) return absl::OkStatus();
    return InvalidArgument("Nodes '", added.first->second.node->name(), "' and '", node.name(), "': both are ",
                           node.op(), " ", port.index, " of function '", port.function, "'");
  }

  absl::Status Use(const NodeDef& node, Users* users) {
    Port port;
    TFR_RETURN_IF_ERROR(ReadPort(node, /*has_call_id=*/true, &port));
    const auto site = functions_.emplace(port.call_id, port.function).first;
    if (site->second != port.function) {
      return InvalidArgument("Node '", node.name(), "': call_id ", port.call_id, " calls '", site->second, "', not '",
                             port.function, "'");
    }
    const auto added = users->emplace(std::make_pair(port.call_id, port.index), User{&node, port});
    if (added.second) return absl::OkStatus();
    return InvalidArgument("Nodes '", added.first->second.node->name(), "' and '", node.name(), "': both are ",
                           node.op(), " ", port.index, " of call_id ", port.call_id);
  }

  absl::Status AddFrameStart(const NodeDef& node) {
    std::string function;
    if (!TryGetNodeAttr(node, kFunctionAttr, &function)) {
      return InvalidArgument("Node '", node.name(), "' (", node.op(), "): an attribute is missing");
    }
    const auto added = frame_starts_.emplace(function, &node);
    if (added.second) return absl::OkStatus();
    return InvalidArgument("Nodes '", added.first->second->name(), "' and '", node.name(), "': both are ", node.op(),
                           " of function '", function, "'");
  }

  static absl::Status MatchUses(const Users& users, const Definitions& definitions, const char* what) {
    for (const auto& [key, user] : users) {
      const Port& port = user.port;
      const auto found = definitions.find({port.function, port.index});
      if (found == definitions.end()) {
        return InvalidArgument("Node '", user.node->name(), "': function '", port.function, "' has no ", what, " ",
                               port.index, " in this graph");
      }
      if (found->second.type != port.type) {
        return InvalidArgument("Node '", user.node->name(), "': ", what, " ", port.index, " of '", port.function,
                               "' is ", DataTypeString(found->second.type), ", not ", DataTypeString(port.type));
      }
    }
    return absl::OkStatus();
  }

  Definitions entries_, results_;
  Users calls_, returns_;
  std::map<int64_t, std::string> functions_;  // by call_id
  std::map<std::string, const NodeDef*> frame_starts_;
};

}  // namespace

absl::Status VerifyNodes(const tensorflow::GraphDef& graph) {
  const tensorflow::FunctionLibraryDefinition library(tensorflow::OpRegistry::Global(), graph.library());
  for (const NodeDef& node : graph.node()) {
    const OpDef* op = nullptr;
    TFR_RETURN_IF_ERROR(FindOp(node, library, &op));
    TFR_RETURN_IF_ERROR(VerifyLengths(node, *op));
    TFR_RETURN_IF_ERROR(VerifyNode(node, *op));
  }
  for (const tensorflow::FunctionDef& function : graph.library().function()) {
    for (const NodeDef& node : function.node_def()) {
      const OpDef* op = nullptr;
      if (!FindOp(node, library, &op).ok()) continue;  // an error where the function is used
      TFR_RETURN_IF_ERROR(VerifyLengths(node, *op));
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyGraph(const tensorflow::Graph& graph) {
  for (const tensorflow::Node* node : graph.op_nodes()) {
    TFR_RETURN_IF_ERROR(VerifyNode(WithEdges(*node), node->op_def()));
    std::vector<bool> connected(node->num_inputs(), false);
    for (const tensorflow::Edge* edge : node->in_edges()) {
      if (!edge->IsControlEdge()) connected[edge->dst_input()] = true;
    }
    const auto gap = std::find(connected.begin(), connected.end(), false);
    if (gap != connected.end()) {
      return InvalidArgument("Node '", node->name(), "' (", node->type_string(), "): input ", gap - connected.begin(),
                             " of ", connected.size(), " is missing");
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyFunctions(const tensorflow::Graph& graph, const tensorflow::FunctionLibraryDefinition& library) {
  for (const tensorflow::Node* node : graph.op_nodes()) {
    TFR_RETURN_IF_ERROR(VerifyLoweringOf(node->def(), library));
  }
  for (const std::string& name : library.ListFunctionNames()) {
    for (const NodeDef& node : library.Find(name)->node_def()) {
      const absl::Status status = VerifyFunctionNode(node, library);
      if (!status.ok()) return InvalidArgument("Function '", name, "': ", status.message());
    }
    const std::string endless = FindEndlessLowering(name, library);
    if (!endless.empty()) {
      return InvalidArgument("Function '", endless, "' contains itself through branches or ordinary calls");
    }
  }
  return absl::OkStatus();
}

absl::Status VerifyCallSite(const tensorflow::Node& invoke, const tensorflow::FunctionLibraryDefinition& library) {
  return VerifyCallSite(WithEdges(invoke), library);
}

absl::Status VerifyCallSite(const NodeDef& invoke, const tensorflow::FunctionLibraryDefinition& library) {
  const std::string& callee = CalleeOf(invoke);
  if (callee.empty()) return InvalidArgument("Node '", invoke.name(), "': attribute f names no function");
  const tensorflow::FunctionDef* definition = library.Find(callee);
  if (definition == nullptr) {
    return InvalidArgument(Describe(invoke), ": the function is declared but has no definition in the graph");
  }
  const OpDef& signature = definition->signature();
  if (signature.attr_size() > 0 || invoke.attr().at(kCalleeAttr).func().attr_size() > 0) {
    return InvalidArgument(Describe(invoke), ": the function takes attributes, which recursive functions cannot");
  }
  DataTypeVector inputs, ignored, outputs;
  GetNodeAttr(invoke, "Tignored", &ignored).IgnoreError();  // it has a default
  if (!GetNodeAttr(invoke, "Tin", &inputs).ok() || !GetNodeAttr(invoke, "Tout", &outputs).ok()) {
    return InvalidArgument(Describe(invoke), ": attribute Tin or Tout is missing");
  }
  if (DataInputs(invoke) != static_cast<int>(inputs.size() + ignored.size())) {
    return InvalidArgument(Describe(invoke), ": the node has ", DataInputs(invoke), " inputs, Tin and Tignored say ",
                           inputs.size() + ignored.size());
  }
  TFR_RETURN_IF_ERROR(VerifyTypes(invoke, inputs, signature.input_arg(), "argument", "takes"));
  return VerifyTypes(invoke, outputs, signature.output_arg(), "output", "returns");
}

absl::Status VerifyExpandedCalls(const tensorflow::GraphDef& graph) {
  ExpandedCalls calls;
  for (const tensorflow::NodeDef& node : graph.node()) TFR_RETURN_IF_ERROR(calls.Add(node));
  return calls.Match();
}

absl::Status VerifyDevices(const tensorflow::Graph& graph, const tensorflow::FunctionLibraryDefinition& library,
                           const tensorflow::DeviceSet& devices, bool allow_soft_placement) {
  using tensorflow::DeviceNameUtils;
  const tensorflow::FunctionLibraryDefinition reachable = ReachableFunctions(library, graph);
  for (const std::string& name : reachable.ListFunctionNames()) {
    for (const tensorflow::NodeDef& node : reachable.Find(name)->node_def()) {
      DeviceNameUtils::ParsedName wanted;
      if (node.device().empty() || !DeviceNameUtils::ParseFullName(node.device(), &wanted)) continue;
      if (allow_soft_placement) wanted.has_type = wanted.has_id = false;
      std::vector<tensorflow::Device*> found;
      devices.FindMatchingDevices(wanted, &found);
      if (!found.empty()) continue;
      std::vector<std::string> names;
      for (const tensorflow::Device* device : devices.devices()) names.push_back(device->name());
      return InvalidArgument("Function '", UserName(name), "': node '", node.name(), "' asks for device '",
                             node.device(), "', there are: ", absl::StrJoin(names, ", "));
    }
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
