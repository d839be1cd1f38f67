// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/spread_boundaries.h"

#include <map>

#include "cc/analysis/node_facts.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::BaseType;
using tensorflow::DataType;
using tensorflow::DataTypeString;
using tensorflow::GetNodeAttr;
using tensorflow::Node;

absl::Status AddToBody(Node* node, const std::string& function, Boundaries* boundaries) {
  BodyPorts& body = boundaries->bodies[function];
  if (Is(node, kFrameStartOp)) {
    body.frame_start = node;
    return absl::OkStatus();
  }
  int64_t index = 0;
  TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), kIndexAttr, &index));
  (Is(node, kEntryOp) ? body.entries : body.results)[index] = node;
  return absl::OkStatus();
}

absl::Status AddToCall(Node* node, const std::string& function, const GraphRegions& regions, Boundaries* boundaries) {
  int64_t index = 0;
  int64_t id = 0;
  TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), kIndexAttr, &index));
  TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), kCallIdAttr, &id));
  CallPorts& call = boundaries->calls[id];
  call.caller = regions.FunctionOf(node);
  call.callee = function;
  if (Is(node, kCallOp)) call.calls[index] = node;
  if (Is(node, kReturnOp)) call.returns.push_back(node);
  boundaries->bodies[function];  // a forged graph may lack the body, which SpreadFrameStart reports
  return absl::OkStatus();
}

}  // namespace

absl::Status CollectBoundaries(const tensorflow::Graph& graph, const GraphRegions& regions, Boundaries* boundaries) {
  for (Node* node : graph.op_nodes()) {
    const bool is_of_body = Is(node, kEntryOp) || Is(node, kResultOp) || Is(node, kFrameStartOp);
    if (!is_of_body && !Is(node, kCallOp) && !Is(node, kReturnOp)) continue;
    std::string function;
    TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), kFunctionAttr, &function));
    TFR_RETURN_IF_ERROR(is_of_body ? AddToBody(node, function, boundaries)
                                   : AddToCall(node, function, regions, boundaries));
  }
  return absl::OkStatus();
}

absl::Status VerifyReturns(const Boundaries& boundaries) {
  for (const auto& [id, call] : boundaries.calls) {
    const std::map<int64_t, Node*>& results = boundaries.bodies.at(call.callee).results;
    for (const Node* node : call.returns) {
      int64_t index = 0;
      TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), kIndexAttr, &index));
      const auto result = results.find(index);
      if (result == results.end()) {
        return InvalidArgument("Node '", node->name(), "': function '", UserName(call.callee), "' has no output ",
                               index, " in this graph");
      }
      const DataType given = BaseType(result->second->input_type(0));
      if (given != BaseType(node->output_type(0))) {
        return InvalidArgument("Node '", node->name(), "': output ", index, " of '", UserName(call.callee), "' is ",
                               DataTypeString(given), ", not ", DataTypeString(node->output_type(0)));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status CollectReturns(const tensorflow::Graph& graph, Boundaries* boundaries) {
  for (auto& [id, call] : boundaries->calls) call.returns.clear();
  for (Node* node : graph.op_nodes()) {
    if (!Is(node, kReturnOp)) continue;
    int64_t id = 0;
    TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), kCallIdAttr, &id));
    boundaries->calls.at(id).returns.push_back(node);
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
