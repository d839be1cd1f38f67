// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/expand_calls.h"

#include <algorithm>
#include <memory>
#include <unordered_set>

#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/expand/align_boundaries.h"
#include "cc/expand/argument_order.h"
#include "cc/expand/binding.h"
#include "cc/expand/call_nodes.h"
#include "cc/expand/call_program.h"
#include "cc/expand/colocation.h"
#include "cc/expand/emission.h"
#include "cc/expand/expandable.h"
#include "cc/expand/flatten.h"
#include "cc/expand/keep_waits.h"
#include "cc/expand/main_graph.h"
#include "cc/expand/name_table.h"
#include "cc/expand/reachability.h"
#include "cc/expand/side_effects.h"
#include "cc/expand/verify_expanded_calls.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionDef;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::Graph;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

// Fails if the graph holds the body of a function already and also has calls of it that are not expanded, because the
// body would then be there twice.
absl::Status VerifyNotExpanded(const GraphDef& graph, const CallProgram& program) {
  for (const NodeDef& node : graph.node()) {
    std::string function;
    if (node.op() == kEntryOp && tensorflow::TryGetNodeAttr(node, kFunctionAttr, &function) &&
        program.functions.count(function)) {
      return InvalidArgument("Function '", function, "': the graph holds calls of it and its body (node '", node.name(),
                             "')");
    }
  }
  return absl::OkStatus();
}

int64_t FirstFreeCallId(const GraphDef& graph) {
  int64_t last = 0;
  for (const NodeDef& node : graph.node()) {
    int64_t id = 0;
    if (tensorflow::TryGetNodeAttr(node, kCallIdAttr, &id)) last = std::max(last, id);
  }
  return last + 1;
}

// Gives the graph those functions that it still needs. The bodies that were expanded, and the branches in them, are
// nodes now: each of TensorFlow's optimizers would copy them once more.
void KeepReachableFunctions(const tensorflow::FunctionDefLibrary& functions, const FunctionLibraryDefinition& library,
                            GraphDef* graph) {
  const FunctionLibraryDefinition reachable = library.ReachableDefinitions(*graph);
  tensorflow::FunctionDefLibrary* const kept = graph->mutable_library();
  for (const tensorflow::FunctionDef& function : functions.function()) {
    if (reachable.Contains(function.signature().name())) *kept->add_function() = function;
  }
  for (const tensorflow::GradientDef& gradient : functions.gradient()) {
    if (reachable.Contains(gradient.function_name())) *kept->add_gradient() = gradient;
  }
}

}  // namespace

bool HasExpandableCalls(const GraphDef& graph, bool is_cut) {
  const auto is_boundary = [](const NodeDef& node) { return node.op() == "_Arg" || node.op() == "_Retval"; };
  if (!is_cut && std::any_of(graph.node().begin(), graph.node().end(), is_boundary)) return false;
  if (HasInvoke(graph)) return true;
  const auto holds_invoke = [](const FunctionDef& function) {
    return std::any_of(function.node_def().begin(), function.node_def().end(), IsInvoke);
  };
  if (std::none_of(graph.library().function().begin(), graph.library().function().end(), holds_invoke)) return false;
  const FunctionLibraryDefinition library(tensorflow::OpRegistry::Global(), graph.library());
  const std::unordered_set<std::string> with_invoke = FunctionsWithInvoke(graph.library(), library);
  return std::any_of(graph.node().begin(), graph.node().end(), [&](const NodeDef& node) {
    const std::vector<std::string> functions = FindExpandable(node, library).functions;
    return std::any_of(functions.begin(), functions.end(), [&](const auto& name) { return with_invoke.count(name); });
  });
}

absl::Status ExpandCalls(const GraphDef& graph, const ExpandOptions& options, GraphDef* expanded) {
  if (!HasExpandableCalls(graph, options.is_cut)) {
    *expanded = graph;
    return absl::OkStatus();
  }
  TFR_RETURN_IF_ERROR(VerifyExpandedCalls(graph));
  CallProgram program;
  GraphNames names = NamesOf(graph);
  BodyFactory bodies(graph.library(), options.placement);

  // First the program is graphs: what the fetches need of the main graph, and the body of every function that may be
  // called.
  std::unique_ptr<Graph> main;
  TFR_RETURN_IF_ERROR(LoadMainGraph(graph, options.fetches, options.feeds, &bodies, &program, &main));
  TFR_RETURN_IF_ERROR(BindCalls(main.get(), &bodies, &program));
  AlignBoundaries(&program);
  SpreadEffects(&program);

  // Then it is lists of nodes that have their names in the final graph, those alone that the fetches need.
  FlattenMain(*main, &names, &program);
  TFR_RETURN_IF_ERROR(FlattenBodies(&names, &program));
  TFR_RETURN_IF_ERROR(VerifyNotExpanded(graph, program));
  OrderArguments(&names.nodes, &program);
  DropGradientWaits(&names.nodes, &program);
  KeepWaits(&names.nodes, &program);
  FindReachable(&program);

  // At last it is one graph again, with Call and Return operators in the place of every call.
  Emit(program, options.run, FirstFreeCallId(graph), &names.nodes, expanded);
  DropDanglingColocation(expanded);
  KeepReachableFunctions(graph.library(), bodies.library(), expanded);
  *expanded->mutable_versions() = graph.versions();
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
