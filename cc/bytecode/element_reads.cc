// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/element_reads.h"

#include <optional>
#include <string>
#include <utility>

#include "cc/values/scalar_operators.h"
#include "cc/values/value.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataType;
using tensorflow::Node;
using tensorflow::Tensor;

// Whether the node runs the operator's kernel, on the host's memory.
bool IsKernel(const FlowGraph& flow, const FlowNode& node, const char* op) {
  return node.kind == OpKind::kKernel && flow.kernels[node.index].op == op && flow.kernels[node.index].is_on_host;
}

int32_t Mask(const Node& node, const char* name) {
  int32_t mask = -1;
  return tensorflow::GetNodeAttr(node.attrs(), name, &mask).ok() ? mask : -1;
}

std::optional<ElementAccess> AccessOf(DataType element, DataType index) {
  const int size = tensorflow::DataTypeSize(element);
  const bool is_index = index == tensorflow::DT_INT32 || index == tensorflow::DT_INT64;
  if (!IsUnboxed(element) || !is_index) return std::nullopt;
  ElementAccess access;
  while ((1 << access.log_size) < size) ++access.log_size;
  access.is_int64 = index == tensorflow::DT_INT64;
  return access;
}

const Tensor* ConstantOf(const FlowGraph& flow, const Input& input) {
  if (!input.is_constant()) return nullptr;
  const ConstantTensor& constant = flow.constants[input.constant];
  return constant.is_on_host ? &constant.tensor : nullptr;
}

// How many of its inputs a node packs into a vector; 0 if it does something else. The Pack of one number is an
// ExpandDims when TensorFlow's optimizers have seen it.
size_t NumPacked(const FlowGraph& flow, const FlowNode& node) {
  if (IsKernel(flow, node, "Pack")) return node.inputs.size();
  if (!IsKernel(flow, node, "ExpandDims")) return 0;
  const Tensor* const axis = ConstantOf(flow, node.inputs[1]);
  return axis != nullptr && axis->NumElements() == 1 && ScalarFromTensor(*axis).bits == 0 ? 1 : 0;
}

bool IsAllOnes(const Tensor* tensor) {
  if (tensor == nullptr || tensor->dims() != 1) return false;
  for (int64_t i = 0; i < tensor->NumElements(); ++i) {
    const bool is_one =
        tensor->dtype() == tensorflow::DT_INT32 ? tensor->vec<int32_t>()(i) == 1 : tensor->vec<int64_t>()(i) == 1;
    if (!is_one) return false;
  }
  return true;
}

// If a gather may read one element, the analysis has made it a scalar operator. Its axis must be the first.
std::optional<ElementRead> FindGather(const FlowGraph& flow, const FlowNode& node) {
  if (node.kind != OpKind::kScalar || node.node->type_string() != "GatherV2") return std::nullopt;
  const Tensor* const axis = ConstantOf(flow, node.inputs[2]);
  if (axis == nullptr || axis->dims() != 0 || ScalarFromTensor(*axis).bits != 0) return std::nullopt;
  const auto access = AccessOf(node.node->input_type(0), node.node->input_type(1));
  if (!access) return std::nullopt;
  return ElementRead{node.inputs[0], {{node.inputs[1], std::nullopt}}, *access};
}

// The numbers in the first bounds of a slice; none if they can't be found.
std::vector<ElementIndex> IndicesOf(const FlowGraph& flow, const Input& begin) {
  std::vector<ElementIndex> indices;
  if (begin.is_constant()) {
    const Tensor* const bounds = ConstantOf(flow, begin);
    if (bounds == nullptr || bounds->dims() != 1) return {};
    for (int64_t i = 0; i < bounds->NumElements(); ++i) {
      const bool is_int32 = bounds->dtype() == tensorflow::DT_INT32;
      indices.push_back({begin, is_int32 ? ToBits(bounds->vec<int32_t>()(i)) : ToBits(bounds->vec<int64_t>()(i))});
    }
  } else {
    const FlowNode& node = flow.nodes[begin.source.node];
    for (size_t i = 0; i < NumPacked(flow, node); ++i) indices.push_back({node.inputs[i], std::nullopt});
  }
  return indices;
}

// In a graph `x[i, j]` is StridedSlice(x, Pack(i, j), Pack(i + 1, j + 1), [1, 1]) with both dimensions taken out. The
// second bounds say nothing new, so they are not looked at.
std::optional<ElementRead> FindSlice(const FlowGraph& flow, const FlowNode& node) {
  if (!IsKernel(flow, node, "StridedSlice")) return std::nullopt;
  auto access = AccessOf(node.node->input_type(0), node.node->input_type(1));
  if (!access) return std::nullopt;  // bounds of int16, for example, which the functions above do not read
  std::vector<ElementIndex> indices = IndicesOf(flow, node.inputs[1]);
  if (indices.empty() || indices.size() > 2) return std::nullopt;
  const bool takes_all = Mask(*node.node, "shrink_axis_mask") == (1 << indices.size()) - 1 &&
                         Mask(*node.node, "begin_mask") == 0 && Mask(*node.node, "ellipsis_mask") == 0 &&
                         Mask(*node.node, "new_axis_mask") == 0 && IsAllOnes(ConstantOf(flow, node.inputs[3]));
  if (!takes_all) return std::nullopt;
  access->counts_from_end = true;
  access->is_matrix = indices.size() == 2;
  return ElementRead{node.inputs[0], std::move(indices), *access};
}

}  // namespace

ElementReads FindElementReads(const FlowGraph& flow) {
  ElementReads found;
  for (NodeId id : flow.nodes.ids()) {
    const FlowNode& node = flow.nodes[id];
    if (node.is_removed) continue;
    if (auto read = FindGather(flow, node)) found.reads.emplace(id, *std::move(read));
    if (auto read = FindSlice(flow, node)) found.reads.emplace(id, *std::move(read));
    if (NumPacked(flow, node) > 0) found.packs.insert(id);
  }
  for (NodeId id : flow.nodes.ids()) {
    const FlowNode& node = flow.nodes[id];
    const bool is_slice = node.kind == OpKind::kKernel && found.reads.count(id) > 0;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool is_bound = is_slice && (i == 1 || i == 2);
      if (!node.inputs[i].is_constant() && !is_bound) found.packs.erase(node.inputs[i].source.node);
    }
  }
  return found;
}

}  // namespace tensorflow_recursion
