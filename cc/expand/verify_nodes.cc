// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/verify_nodes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cc/base/status.h"
#include "cc/expand/expandable.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/control_flow.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::NodeDef;
using tensorflow::OpDef;

absl::Status FindOp(const NodeDef& node, const tensorflow::FunctionLibraryDefinition& library, const OpDef** op) {
  const absl::Status status = library.LookUpOpDef(node.op(), op);
  return status.ok() ? status : InvalidArgument("Node '", node.name(), "': ", status.message());
}

// How many inputs or outputs a list may have: more than any real node has, and too few to exhaust memory.
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

// Says so if the node is a conditional or a loop that goes by something that is no bool. Its kernel would take any
// number, but Switch and LoopCond do not.
absl::Status VerifyCondition(const NodeDef& node, const tensorflow::FunctionLibraryDefinition& library) {
  tensorflow::DataType type = tensorflow::DT_BOOL;
  if (const auto predicate = node.attr().find("Tcond"); predicate != node.attr().end()) {
    type = predicate->second.type();
  } else if (const auto condition = node.attr().find("cond"); condition != node.attr().end()) {
    const tensorflow::FunctionDef* function = library.Find(condition->second.func().name());
    if (function != nullptr && function->signature().output_arg_size() == 1) {
      type = function->signature().output_arg(0).type();
    }
  }
  if (type == tensorflow::DT_BOOL || type == tensorflow::DT_INVALID) return absl::OkStatus();
  return InvalidArgument("Node '", node.name(), "' (", node.op(), "): its condition is ",
                         tensorflow::DataTypeString(type), ", expected bool; write n > 0, for example, or ",
                         "tf.cast(n, tf.bool)");
}

absl::Status VerifyLoweringOf(const NodeDef& node, const tensorflow::FunctionLibraryDefinition& library) {
  if (!IsMarkedForLowering(node) || FindExpandable(node, library).kind != Expansion::kNone) return absl::OkStatus();
  for (const auto& [name, value] : node.attr()) {
    if (TakesAttributes(value, library)) return absl::OkStatus();  // whether it fits is known when it is instantiated
  }
  TFR_RETURN_IF_ERROR(VerifyCondition(node, library));
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
    if (value->second.value_case() == tensorflow::AttrValue::kPlaceholder) continue;  // known when instantiated
    const absl::Status status = tensorflow::AttrValueHasType(value->second, attr.type());
    if (!status.ok()) {
      return InvalidArgument("Node '", node.name(), "' (", node.op(), "): attribute ", attr.name(), ": ",
                             status.message());
    }
  }
  return absl::OkStatus();
}

// Grappler reads a constant as of the dtype that its attribute states, and crashes if it is of another one.
absl::Status VerifyConstant(const NodeDef& node) {
  if (node.op() != "Const") return absl::OkStatus();
  const auto dtype = node.attr().find("dtype");
  const auto value = node.attr().find("value");
  if (dtype == node.attr().end() || value == node.attr().end()) return absl::OkStatus();  // others report that
  if (dtype->second.value_case() != tensorflow::AttrValue::kType) return absl::OkStatus();
  if (dtype->second.type() == value->second.tensor().dtype()) return absl::OkStatus();
  return InvalidArgument("Node '", node.name(), "' (Const): its value is ",
                         tensorflow::DataTypeString(value->second.tensor().dtype()), ", its attribute dtype says ",
                         tensorflow::DataTypeString(dtype->second.type()));
}

absl::Status VerifyFunctionNode(const NodeDef& node, const tensorflow::FunctionLibraryDefinition& library) {
  TFR_RETURN_IF_ERROR(VerifyConstant(node));
  const OpDef* op = nullptr;
  if (!FindOp(node, library, &op).ok()) return absl::OkStatus();  // TensorFlow reports that itself
  TFR_RETURN_IF_ERROR(VerifyLengths(node, *op));
  TFR_RETURN_IF_ERROR(VerifyAttributes(node, *op));
  return VerifyLoweringOf(node, library);
}

absl::Status VerifyNode(NodeDef node, const OpDef& op) {
  tensorflow::AddDefaultsToNodeDef(op, &node);
  const absl::Status status = tensorflow::ValidateNodeDef(node, op);
  return status.ok() ? status : InvalidArgument(status.message());
}

// `frames` has the frame of each node, by its id.
absl::Status VerifyExitsLeaveLoops(const tensorflow::Graph& graph,
                                   const std::vector<tensorflow::ControlFlowInfo>& frames) {
  for (const tensorflow::Edge* edge : graph.edges()) {
    if (edge->IsControlEdge() || !edge->dst()->IsExit() || !frames[edge->src()->id()].frame_name.empty()) continue;
    return InvalidArgument("Node '", edge->dst()->name(), "' (Exit) is in no loop, because its input '",
                           edge->src()->name(), "' is in none");
  }
  return absl::OkStatus();
}

}  // namespace

NodeDef DefinitionWithEdges(const tensorflow::Node& node) {
  NodeDef definition = node.def();
  definition.clear_input();
  for (int i = 0; i < node.num_inputs(); ++i) definition.add_input("edge");
  return definition;
}

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
    TFR_RETURN_IF_ERROR(VerifyNode(DefinitionWithEdges(*node), node->op_def()));
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
  return VerifyLoops(graph);
}

absl::Status VerifyLoops(const tensorflow::Graph& graph) {
  const auto nodes = graph.op_nodes();
  const auto is_of_loop = [](const tensorflow::Node* node) { return node->IsEnter() || node->IsExit(); };
  if (std::none_of(nodes.begin(), nodes.end(), is_of_loop)) return absl::OkStatus();
  std::vector<tensorflow::ControlFlowInfo> frames;
  TFR_RETURN_IF_ERROR(AsInvalidArgument(tensorflow::BuildControlFlowInfo(&graph, &frames)));
  return VerifyExitsLeaveLoops(graph, frames);
}

absl::Status VerifyExits(const tensorflow::Graph& graph) {
  const auto nodes = graph.op_nodes();
  std::vector<tensorflow::ControlFlowInfo> frames;
  if (std::none_of(nodes.begin(), nodes.end(), [](const tensorflow::Node* node) { return node->IsExit(); }) ||
      !tensorflow::BuildControlFlowInfo(&graph, &frames).ok()) {
    return absl::OkStatus();
  }
  return VerifyExitsLeaveLoops(graph, frames);
}

absl::Status VerifyFunctions(const tensorflow::Graph& graph, const tensorflow::FunctionLibraryDefinition& library) {
  for (const tensorflow::Node* node : graph.op_nodes()) {
    TFR_RETURN_IF_ERROR(VerifyConstant(node->def()));
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

}  // namespace tensorflow_recursion
