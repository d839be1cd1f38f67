// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/neutral_nodes.h"

#include <algorithm>
#include <map>
#include <string>

#include "cc/values/value.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {
namespace {

const std::map<std::string, NeutralNode>& ByOperator() {
  static const auto* nodes = new std::map<std::string, NeutralNode>{
      {"Shape", {0, {}, true}},  {"BroadcastGradientArgs", {std::nullopt, {0, 1}, true}},
      {"Sum", {0, {1}, false}},  {"Reshape", {0, {1}, false}},
      {"Fill", {1, {0}, false}}, {"BroadcastTo", {0, {1}, false}},
  };
  return *nodes;
}

bool IsEmptyVector(const FlowGraph& flow, const Input& input) {
  const tensorflow::Tensor& constant = flow.constants[input.constant].tensor;
  return constant.dims() == 1 && constant.NumElements() == 0;
}

bool IsOnHost(const FlowGraph& flow, const FlowNode& node) {
  return node.kind == OpKind::kKernel && flow.kernels[node.index].is_on_host;
}

}  // namespace

std::optional<NeutralNode> NeutralNode::Find(const FlowGraph& flow, const FlowNode& node) {
  if (!IsOnHost(flow, node)) return std::nullopt;
  const KernelNode& kernel = flow.kernels[node.index];
  const auto found = ByOperator().find(kernel.op);
  if (found == ByOperator().end()) return std::nullopt;
  const NeutralNode& neutral = found->second;
  if (neutral.number && !IsUnboxed(kernel.inputs[static_cast<size_t>(*neutral.number)])) return std::nullopt;
  const bool has_shapes = std::all_of(neutral.shapes.begin(), neutral.shapes.end(), [&](int i) {
    const Input& input = node.inputs[static_cast<size_t>(i)];
    return !input.is_constant() || IsEmptyVector(flow, input);
  });
  return has_shapes ? std::optional<NeutralNode>(neutral) : std::nullopt;
}

bool MakesZeroRecord(const FlowGraph& flow, const FlowNode& node) {
  if (!IsOnHost(flow, node)) return false;
  const KernelNode& kernel = flow.kernels[node.index];
  return kernel.op == "ZerosLike" && kernel.inputs[0] == tensorflow::DT_VARIANT;
}

}  // namespace tensorflow_recursion
