// SPDX-License-Identifier: Apache-2.0
#include "cc/program/element_operators.h"

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "cc/base/status.h"
#include "cc/bytecode/element_reads.h"
#include "cc/values/scalar_operators.h"
#include "cc/values/tensor_memory.h"
#include "cc/values/value.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataType;
using tensorflow::Tensor;
using tensorflow::TensorShape;

// Which inputs of the operator are the tensor, its first index, and the strides.
constexpr int kArray = 0;
constexpr int kFirstIndex = 1;
constexpr int kStrides = 3;

// Sets *position to where the index leads. A negative index counts from the end. Returns false if the index is no
// number, or leads out of the tensor.
template <typename Index>
bool FindPosition(const Value& index, int64_t length, int64_t* position) {
  if (!index.is_scalar()) return false;
  const auto given = static_cast<int64_t>(FromBits<Index>(index.bits));
  *position = given < 0 ? given + length : given;
  return *position >= 0 && *position < length;
}

template <typename T, typename Index, int dims>
bool ReadElement(const Value* in, Value* out) {
  const Tensor* const array = in[kArray].tensor_or_null();
  if (array == nullptr || array->dims() != dims) return false;
  int64_t position = 0;
  for (int i = 0; i < dims; ++i) {
    int64_t index = 0;
    if (!FindPosition<Index>(in[kFirstIndex + i], array->dim_size(i), &index)) return false;
    position = position * array->dim_size(i) + index;
  }
  *out = Value::Scalar(ToBits(static_cast<const T*>(array->data())[position]));
  return true;
}

template <typename T>
ScalarFunction ReadBy(const ElementAccess& access) {
  if (access.is_matrix) return access.is_int64 ? ReadElement<T, int64_t, 2> : ReadElement<T, int32_t, 2>;
  return access.is_int64 ? ReadElement<T, int64_t, 1> : ReadElement<T, int32_t, 1>;
}

// The function serves every type of elements of this size, because only their bits matter.
ScalarFunction ReadOf(const ElementAccess& access) {
  switch (access.log_size) {
    case 0:
      return ReadBy<uint8_t>(access);
    case 1:
      return ReadBy<uint16_t>(access);
    case 2:
      return ReadBy<uint32_t>(access);
    default:
      return ReadBy<uint64_t>(access);
  }
}

// Changes the reads of a flow graph, and counts who reads each node, so that nodes which nobody reads can go.
class Rewriter {
 public:
  explicit Rewriter(FlowGraph* flow) : flow_(*flow), found_(FindElementReads(*flow)), readers_(flow->nodes.size(), 0) {}

  ElementReads Run() {
    CountReaders();
    std::vector<NodeId> bounds;
    for (const auto& [id, read] : found_.reads) {
      FlowNode& node = flow_.nodes[id];
      if (node.kind != OpKind::kKernel) continue;  // a Gather, which is a kScalar already
      for (const int i : {1, 2}) {
        if (!node.inputs[i].is_constant()) bounds.push_back(node.inputs[i].source.node);
      }
      Rewrite(&node, read);
    }
    for (NodeId id : bounds) Release(id);
    return std::move(found_);
  }

 private:
  void CountReaders() {
    for (const FlowNode& node : flow_.nodes) {
      if (node.is_removed) continue;
      ForEachSource(node, [this](const Source& source) { ++readers_[source.node]; });
      if (node.branch != kNone) ++readers_[node.branch];
    }
    for (const FlowLoop& loop : flow_.loops) {
      for (const std::vector<Source>& controls : loop.next_controls) {
        for (const Source& source : controls) ++readers_[source.node];
      }
    }
  }

  void Rewrite(FlowNode* node, const ElementRead& read) {
    const Input strides = node->inputs[kStrides];
    const DataType dtype = node->node->input_type(kFirstIndex);
    std::vector<Input> inputs = {read.array};
    for (const ElementIndex& index : read.indices) {
      inputs.push_back(index.known ? Constant(dtype, *index.known, node->inputs[1].guards) : index.input);
      if (!inputs.back().is_constant()) ++readers_[inputs.back().source.node];
    }
    inputs.resize(kStrides + 1, strides);
    // The operator no longer reads the upper bound. If this was a constant, what guards it now guards the strides.
    const std::vector<Source>& guards = node->inputs[2].guards;
    inputs[kStrides].guards.insert(inputs[kStrides].guards.end(), guards.begin(), guards.end());
    // The operator waits for what the Packs waited for by control edges.
    for (const int i : {1, 2}) {
      if (node->inputs[i].is_constant()) continue;
      const std::vector<Source>& controls = flow_.nodes[node->inputs[i].source.node].controls;
      node->controls.insert(node->controls.end(), controls.begin(), controls.end());
      for (const Source& source : controls) ++readers_[source.node];
    }
    node->inputs = std::move(inputs);
    node->scalar = ReadOf(read.access);
    node->kind = OpKind::kScalar;
  }

  Input Constant(DataType dtype, uint64_t bits, const std::vector<Source>& guards) {
    Input input;
    input.guards = guards;
    input.constant = ConstantId(static_cast<uint32_t>(flow_.constants.size()));
    flow_.constants.push_back({TensorFromScalar(Value::Scalar(bits), dtype), /*is_on_host=*/true});
    return input;
  }

  // To be called when `first` has lost a reader. If that was the last one, and the node only computes, it is removed;
  // then the nodes that it read have lost a reader, and so on.
  void Release(NodeId first) {
    std::vector<NodeId> released = {first};
    while (!released.empty()) {
      const NodeId id = released.back();
      released.pop_back();
      FlowNode& node = flow_.nodes[id];
      const bool only_computes = node.kind == OpKind::kScalar || found_.packs.count(id) > 0;
      if (--readers_[id] > 0 || !only_computes) continue;
      node.is_removed = true;
      ForEachSource(node, [&](const Source& source) { released.push_back(source.node); });
    }
  }

  FlowGraph& flow_;
  ElementReads found_;
  IdVector<NodeId, int> readers_;
};

Value Packed(DataType dtype, const std::vector<uint64_t>& numbers) {
  auto* const tensor = NewTensor(Tensor(dtype, TensorShape({static_cast<int64_t>(numbers.size())})));
  const int size = tensorflow::DataTypeSize(dtype);
  for (size_t i = 0; i < numbers.size(); ++i) {  // little-endian: the low bytes come first
    std::memcpy(static_cast<char*>(tensor->data()) + i * size, &numbers[i], size);
  }
  return Value::Own(tensor);
}

}  // namespace

ElementReads MakeElementOperators(FlowGraph* flow) { return Rewriter(flow).Run(); }

bool PackIndices(DataType dtype, Value* inputs) {
  const auto dims = static_cast<int>(inputs[kStrides].tensor_or_null()->NumElements());
  std::vector<uint64_t> begin;
  std::vector<uint64_t> end;
  for (int i = 0; i < dims; ++i) {
    const Value& index = inputs[kFirstIndex + i];
    if (!index.is_scalar()) return false;
    begin.push_back(index.bits);
    end.push_back(index.bits + 1);
  }
  inputs[1] = Packed(dtype, begin);
  inputs[2] = Packed(dtype, end);
  return true;
}

absl::Status IndexIsNoNumber(const std::string& name) {
  return InvalidArgument(
      "An index of an element is a tensor of one or more dimensions, expected a number\n\t [[{{node ", name, "}}]]");
}

}  // namespace tensorflow_recursion
