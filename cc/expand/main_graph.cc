// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/main_graph.h"

#include <utility>

#include "cc/base/status.h"
#include "cc/expand/loop_frames.h"
#include "cc/expand/pruning.h"
#include "cc/expand/resolve_calls.h"
#include "cc/expand/verify_nodes.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Graph;
using tensorflow::GraphDef;

absl::Status Construct(GraphDef nodes, std::unique_ptr<Graph>* graph) {
  TFR_RETURN_IF_ERROR(VerifyNodes(nodes));
  auto built = std::make_unique<Graph>(tensorflow::OpRegistry::Global());
  tensorflow::GraphConstructorOptions options;
  options.allow_internal_ops = true;
  TFR_RETURN_IF_ERROR(AsInvalidArgument(ConvertGraphDefToGraph(options, std::move(nodes), built.get())));
  TFR_RETURN_IF_ERROR(VerifyGraph(*built));
  *graph = std::move(built);
  return absl::OkStatus();
}

}  // namespace

absl::Status LoadMainGraph(const GraphDef& graph, const std::vector<std::string>& fetches,
                           const std::vector<std::string>& feeds, BodyFactory* bodies, CallProgram* program,
                           std::unique_ptr<Graph>* main) {
  Pruner pruner(graph);
  TFR_RETURN_IF_ERROR(pruner.Index());
  TFR_RETURN_IF_ERROR(ReadFetches(graph, pruner, fetches, feeds, program));
  GraphDef kept;
  TFR_RETURN_IF_ERROR(pruner.Keep(program->fetches, &kept));
  bodies->HoldMain(&kept);
  TFR_RETURN_IF_ERROR(Construct(std::move(kept), main));
  TFR_RETURN_IF_ERROR(AsInvalidArgument(bodies->ExpandMain(main)));
  TFR_RETURN_IF_ERROR(AsInvalidArgument(ResolveCalls(/*suffix=*/"", main->get())));
  return FindLoopFrames(main->get(), program);
}

}  // namespace tensorflow_recursion
