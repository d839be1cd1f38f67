// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/kept_results.h"

#include <algorithm>
#include <set>
#include <vector>

#include "cc/analysis/argument_trace.h"
#include "cc/analysis/effects.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {
namespace {

bool IsPlain(tensorflow::DataType dtype) {
  return dtype != tensorflow::DT_RESOURCE && dtype != tensorflow::DT_VARIANT && !tensorflow::IsRefType(dtype);
}

// Whether the kernel makes the same plain tensors of the same plain tensors, and does nothing else.
bool MakesTheSame(const FlowNode& node, const KernelNode& kernel) {
  const bool is_plain = std::all_of(kernel.inputs.begin(), kernel.inputs.end(), IsPlain) &&
                        std::all_of(kernel.outputs.begin(), kernel.outputs.end(), IsPlain);
  return is_plain && !kernel.outputs.empty() && !node.may_be_dead && IsPure(*node.node);
}

// A scalar operator has a kernel, too, for inputs that are no numbers.
bool RunsByKernel(OpKind kind) { return kind == OpKind::kKernel || kind == OpKind::kScalar; }

}  // namespace

absl::Status FindKeptResults(FlowGraph* flow) {
  if (flow->recursions.empty() || flow->ChangesInputs()) return absl::OkStatus();
  std::vector<NodeId> order;
  TFR_RETURN_IF_ERROR(SortNodes(*flow, &order));
  std::set<NodeId> keepers;
  for (NodeId id : order) {
    const FlowNode& node = flow->nodes[id];
    if (!RunsByKernel(node.kind) || node.is_removed) continue;
    const auto function = flow->functions.find(flow->regions.FunctionRegionOf(node.region));
    if (function == flow->functions.end() || function->second.recursion == kNone) continue;
    KernelNode& kernel = flow->kernels[node.index];
    if (!MakesTheSame(node, kernel)) continue;
    const auto is_kept = [&](const Input& input) {
      return input.is_token() && keepers.count(TraceArgument(*flow, input.source).origin.node) > 0;
    };
    const auto is_same = [&](const Input& input) {
      return input.is_invariant() || input.is_constant() || is_kept(input);
    };
    const bool reads_constants_alone =
        std::all_of(node.inputs.begin(), node.inputs.end(), [](const Input& input) { return input.is_constant(); });
    if (reads_constants_alone || !std::all_of(node.inputs.begin(), node.inputs.end(), is_same)) continue;
    keepers.insert(id);
    uint32_t& num_kept = flow->recursions[function->second.recursion].num_kept_results;
    kernel.kept_results = num_kept;
    num_kept += static_cast<uint32_t>(kernel.outputs.size());
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
