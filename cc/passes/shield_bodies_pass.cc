// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/shield_bodies_pass.h"

#include <string>

#include "cc/analysis/node_owners.h"
#include "cc/passes/make_composite.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Node;

constexpr char kShield[] = "/device:RECURSION:0";

}  // namespace

absl::Status ShieldBodiesPass::Run(const tensorflow::GraphOptimizationPassOptions& options) {
  if (options.partition_graphs == nullptr) return absl::OkStatus();
  for (auto& [device, graph] : *options.partition_graphs) {
    if (!NeedsOurExecutor(*graph)) continue;
    for (Node* node : graph->op_nodes()) {
      // The sends and receives that partitioning adds are not marked, and need no shield.
      if (IsMarkedAsPartOfBody(*node) && !IsForOneDnnAlone(*node)) node->set_requested_device(kShield);
    }
  }
  return absl::OkStatus();
}

bool IsForOneDnnAlone(const Node& node) {
  if (node.type_string()[0] != '_' || node.num_outputs() == 0) return false;
  std::string kernel_class;
  const absl::Status found = tensorflow::FindKernelDef(tensorflow::DEVICE_CPU, node.def(), nullptr, &kernel_class);
  return found.ok() && kernel_class == "NoOp";
}

void RemoveShields(const std::string& device, tensorflow::Graph* partition) {
  for (Node* node : partition->op_nodes()) {
    if (node->requested_device() == kShield) node->set_requested_device(device);
  }
}

}  // namespace tensorflow_recursion
