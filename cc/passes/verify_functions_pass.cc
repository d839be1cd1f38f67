// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/verify_functions_pass.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/expand/call_nodes.h"
#include "cc/expand/verify_nodes.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Graph;
using tensorflow::Node;

bool HoldsCalls(const Graph& graph, const tensorflow::FunctionLibraryDefinition& library) {
  const auto nodes = graph.op_nodes();
  if (std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return node->type_string() == kInvokeOp; })) {
    return true;
  }
  const std::vector<std::string> names = library.ListFunctionNames();
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const auto& body = library.Find(name)->node_def();
    return std::any_of(body.begin(), body.end(), IsInvoke);
  });
}

// An imported graph that was transformed before may have lost the edges that keep its calls in their loops. Stock
// optimizers assume that all inputs of a node come from one loop, and crash if they do not.
absl::Status VerifyFrames(const Graph& graph) {
  const auto nodes = graph.op_nodes();
  const bool is_transformed =
      std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return node->type_string() == kReturnOp; });
  if (!is_transformed) return absl::OkStatus();
  const absl::Status status = VerifyLoops(graph);
  return status.ok() ? status : InvalidArgument("A transformed graph is malformed: ", status.message());
}

}  // namespace

absl::Status VerifyFunctionsPass::Run(const tensorflow::GraphOptimizationPassOptions& options) {
  if (options.graph == nullptr || options.flib_def == nullptr || options.is_function_graph) return absl::OkStatus();
  TFR_RETURN_IF_ERROR(VerifyFrames(**options.graph));
  if (!HoldsCalls(**options.graph, *options.flib_def)) return absl::OkStatus();
  TFR_RETURN_IF_ERROR(VerifyExits(**options.graph));
  return VerifyFunctions(**options.graph, *options.flib_def);
}

}  // namespace tensorflow_recursion
