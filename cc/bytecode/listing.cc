// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/listing.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cc/analysis/flow_graph.h"
#include "cc/analysis/superfluous_waits.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/bytecode/compiler.h"
#include "cc/bytecode/disassembler.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"

namespace tensorflow_recursion {
namespace {

absl::Status Describe(const tensorflow::Graph& graph, FlowGraph* flow) {
  GraphRegions regions;
  TFR_RETURN_IF_ERROR(regions.Build(graph));
  TFR_RETURN_IF_ERROR(BuildFlowGraph(graph, std::move(regions), DeviceMemory(), flow));
  return DropSuperfluousWaits(flow);
}

}  // namespace

absl::Status ListBytecode(const tensorflow::GraphDef& graph_def, const std::string& function, std::string* listing) {
  tensorflow::Graph graph(tensorflow::OpRegistry::Global());
  tensorflow::GraphConstructorOptions options;
  options.allow_internal_ops = true;
  TFR_RETURN_IF_ERROR(tensorflow::ConvertGraphDefToGraph(options, graph_def, &graph));
  FlowGraph flow;
  TFR_RETURN_IF_ERROR(Describe(graph, &flow));
  const CompiledFunctions compiled = CompileFunctions(flow);
  listing->clear();
  for (const auto& [region, body] : flow.functions) {
    if (region == kNone || UserName(flow.regions.regions()[region].name) != function) continue;
    const auto code = compiled.functions.find(region);
    if (code != compiled.functions.end()) {
      absl::StrAppend(listing, Disassemble(*compiled.code, compiled.code->functions[code->second]));
    } else {
      const auto reason = compiled.reasons.find(region);
      absl::StrAppend(listing, function, " runs in frames, because of ",
                      reason == compiled.reasons.end()
                          ? "what it calls, or a value that is a number here and a tensor there"
                          : reason->second,
                      "\n");
    }
  }
  if (!listing->empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("No call of '", function, "' is in the graph"));
}

}  // namespace tensorflow_recursion
