// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/compiler.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "cc/bytecode/blocks.h"
#include "cc/bytecode/candidates.h"
#include "cc/bytecode/code_builder.h"
#include "cc/bytecode/compared_calls.h"
#include "cc/bytecode/compile_context.h"
#include "cc/bytecode/element_reads.h"
#include "cc/bytecode/emitter.h"
#include "cc/bytecode/encoder.h"
#include "cc/bytecode/fork_plans.h"
#include "cc/bytecode/register_types.h"
#include "cc/bytecode/steps.h"

namespace tensorflow_recursion {
namespace {

// Larger bodies are not compiled. They are no small recursive functions, and jumps over them would be too far for an
// instruction.
constexpr size_t kMostSteps = 16000;

CodeFunction Signature(const FlowGraph& flow, const RegisterTypes& types, RegionId region) {
  const FlowFunction& function = flow.functions.at(region);
  CodeFunction signature;
  signature.graph_name = flow.regions.regions()[region].name;
  signature.name = UserName(signature.graph_name);
  for (NodeId entry : function.entries) {
    RegisterType type;
    if (entry != kNone) type = {flow.nodes[entry].node->output_type(0), types.IsArray({entry, 0})};
    signature.arguments.push_back(type);
  }
  for (int i = 0; i < function.num_results(); ++i) {
    const NodeId result = types.ResultOf(region, i);
    RegisterType type;
    if (result != kNone) type = {flow.nodes[result].node->input_type(0), types.IsArray({result, 0})};
    signature.results.push_back(type);
  }
  return signature;
}

// Compiles `regions`, whose functions call only one another. If one of them can't be compiled, takes it out and returns
// nullptr.
std::unique_ptr<Code> Compile(const FlowGraph& flow, const std::vector<NodeId>& order, const ElementReads& reads,
                              const RegisterTypes& types, Blocks* blocks, CompiledFunctions* compiled,
                              std::set<RegionId>* regions) {
  auto code = std::make_unique<Code>();
  CodeBuilder builder(code.get());
  CompileContext context{flow, reads, blocks, &builder, code.get(), {}, {}, {}};
  for (NodeId id : order) {
    const RegionId function = FunctionOf(flow, flow.nodes[id].region);
    if (regions->count(function) > 0 && !flow.nodes[id].is_removed) context.nodes[function].push_back(id);
  }
  for (RegionId region : *regions) context.functions[region] = builder.Declare(Signature(flow, types, region));
  for (RegionId region : *regions) {
    FunctionSteps steps;
    builder.Begin(context.functions[region]);
    bool is_fit = Emitter(&context, region, &steps).Run() && steps.steps.size() <= kMostSteps;
    if (is_fit) {
      SimplifySteps(&steps);
      FuseReturns(&steps);
      Encode(steps, &builder);
      is_fit = builder.End().ok();
    }
    if (is_fit) continue;
    compiled->reasons[region] = "its size, or conditionals that have no order";
    regions->erase(region);
    return nullptr;
  }
  CompareBeforeCalls(code.get());
  AddForkPlans(code.get());
  compiled->functions = std::move(context.functions);
  return code;
}

}  // namespace

CompiledFunctions CompileFunctions(const FlowGraph& flow) {
  CompiledFunctions compiled;
  std::vector<NodeId> order;
  if (!SortNodes(flow, &order).ok()) return compiled;
  const ElementReads reads = FindElementReads(flow);
  Blocks blocks(flow);
  RegisterTypes types(flow, reads);
  Candidates candidates(flow, order, reads, &blocks, &types);
  std::set<RegionId> regions = candidates.Find();
  for (const auto& [region, node] : candidates.misfits()) {
    compiled.reasons[region] = absl::StrCat("'", node->name(), "' (", node->type_string(), ")");
  }
  while (!regions.empty()) {
    compiled.code = Compile(flow, order, reads, types, &blocks, &compiled, &regions);
    if (compiled.code != nullptr) return compiled;
    regions = candidates.Restrict(std::move(regions));
  }
  return compiled;
}

}  // namespace tensorflow_recursion
