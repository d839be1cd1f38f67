// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/composite_pass.h"

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/passes/make_composite.h"
#include "cc/passes/shield_bodies_pass.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

absl::Status CompositePass::Run(const tensorflow::GraphOptimizationPassOptions& options) {
  static std::atomic<int64_t> next_id{0};  // sessions may be made by several threads at once
  if (options.partition_graphs == nullptr) return absl::OkStatus();
  for (auto& [device, graph] : *options.partition_graphs) {
    // The graph of a function's part has an empty library; that of the function is in the options.
    const auto& library = options.flib_def == nullptr ? graph->flib_def() : *options.flib_def;
    if (!NeedsOurExecutor(*graph) && !HoldsCallsToMakeStatic(*graph, library)) continue;
    RemoveShields(device, graph.get());
    const std::string name = absl::StrCat(kRunNodePrefix, next_id.fetch_add(1));
    TFR_RETURN_IF_ERROR(MakeComposite(device, name, options.is_function_graph, library, &graph));
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
