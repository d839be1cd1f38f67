// SPDX-License-Identifier: Apache-2.0
#include "cc/program/program.h"

#include <map>
#include <set>
#include <utility>

#include "cc/analysis/flow_graph.h"
#include "cc/analysis/keep_invariants.h"
#include "cc/analysis/kept_results.h"
#include "cc/analysis/shared_reads.h"
#include "cc/analysis/superfluous_waits.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/bytecode/compiler.h"
#include "cc/program/assembler.h"
#include "cc/program/element_operators.h"
#include "cc/program/fuse_pieces.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Node;

// Reads the options from one FrameStart: all have the same.
absl::Status ReadOptions(const tensorflow::Graph& graph, Options* options) {
  for (const Node* node : graph.op_nodes()) {
    if (node->type_string() != kFrameStartOp) continue;
    TFR_RETURN_IF_ERROR(tensorflow::GetNodeAttr(node->attrs(), kMaxDepthAttr, &options->max_depth));
    if (node->attrs().Find(kStaticAttr) != nullptr) options->depth_setting = kDepthSettingOfCall;
    TFR_RETURN_IF_ERROR(tensorflow::GetNodeAttr(node->attrs(), kWorkersAttr, &options->workers));
    TFR_RETURN_IF_ERROR(tensorflow::GetNodeAttr(node->attrs(), kCompileAttr, &options->compile));
    if (options->max_depth >= 1) break;
    return InvalidArgument("Node '", node->name(), "': max_depth must be at least 1, got ", options->max_depth);
  }
  return absl::OkStatus();
}

absl::Status CheckBoundary(const Program& program) {
  for (const auto* types : {&program.argument_types, &program.retval_types}) {
    for (size_t i = 0; i < types->size(); ++i) {
      if ((*types)[i] == tensorflow::DT_INVALID) {
        return InvalidArgument("Argument or result ", i, " of the graph is missing");
      }
    }
  }
  return absl::OkStatus();
}

std::set<RegionId> RegionsOf(const CompiledFunctions& compiled) {
  std::set<RegionId> regions;
  for (const auto& [region, number] : compiled.functions) regions.insert(region);
  return regions;
}

// Lets the call sites of compiled functions know their code. Calls of a function with parts on several devices open
// frames on all of them, and do without.
void LinkCompiled(CompiledFunctions compiled, Program* program) {
  program->code = std::move(compiled.code);
  std::map<uint32_t, const CompiledFunction*> by_region;
  for (const auto& [region, number] : compiled.functions) {
    CompiledFunction& function = program->compiled.emplace_back();
    function.number = number;
    by_region[region] = &function;
  }
  for (CallSite& site : program->sites) {
    if (site.callee == nullptr || site.waits_for_announcement || site.announce_port != kNone) continue;
    const auto function = by_region.find(site.callee->id);
    if (function != by_region.end()) site.compiled = function->second;
  }
}

}  // namespace

absl::Status BuildProgram(const tensorflow::Graph& graph, const DeviceMemory& memory, VariableReads variable_reads,
                          std::unique_ptr<Program>* program) {
  auto result = std::make_unique<Program>();
  TFR_RETURN_IF_ERROR(memory.Verify(graph));
  TFR_RETURN_IF_ERROR(ReadOptions(graph, &result->options));
  GraphRegions regions;
  TFR_RETURN_IF_ERROR(regions.Build(graph));
  FlowGraph flow;
  TFR_RETURN_IF_ERROR(BuildFlowGraph(graph, std::move(regions), memory, &flow));
  TFR_RETURN_IF_ERROR(DropSuperfluousWaits(&flow));
  CompiledFunctions compiled;
  if (result->options.compile) compiled = CompileFunctions(flow);
  const ElementReads reads = MakeElementOperators(&flow);
  const std::set<RegionId> compiled_regions = RegionsOf(compiled);
  if (result->options.compile) FusePieces(reads, compiled_regions, &flow, result.get());
  VariableReaders readers;
  if (variable_reads == VariableReads::kOncePerRecursion) readers = FindVariableReaders(flow);
  // These come after all others that look at inputs, because those take every input that is no constant for a token.
  TFR_RETURN_IF_ERROR(KeepInvariants(compiled_regions, &flow));
  TFR_RETURN_IF_ERROR(ShareReads(readers, &flow, &result->shared_reads));
  TFR_RETURN_IF_ERROR(FindKeptResults(&flow));
  TFR_RETURN_IF_ERROR(Assemble(std::move(flow), result.get()));
  LinkCompiled(std::move(compiled), result.get());
  TFR_RETURN_IF_ERROR(CheckBoundary(*result));
  *program = std::move(result);
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
