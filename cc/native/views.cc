// SPDX-License-Identifier: Apache-2.0
#include "cc/native/views.h"

#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "cc/base/names.h"
#include "cc/values/rope.h"
#include "cc/values/tensor_memory.h"
#include "tensorflow/core/common_runtime/dma_helper.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;

// A part of a tensor that a frame gives up keeps at most so many times the memory that it takes itself.
constexpr int64_t kMostTimesKept = 8;

// Whether the reader at the end of this edge needs none of the value's numbers.
bool ReadsNoNumbers(const tensorflow::Edge& edge) {
  static const auto* const carriers = new absl::flat_hash_set<std::string>(
      {"Merge", "Identity", "EnsureShape", "ConcatV2", "Switch", "Enter", "NextIteration", "Exit", "Shape", "ShapeN",
       "Size", "Rank", kCallOp, kReturnOp, kResultOp, kRetainOp});
  return edge.IsControlEdge() || carriers->contains(edge.dst()->type_string());
}

// Whether a native product multiplies with the value. Only products are looked at: to look for the kernel of a Gather
// would be to look at its readers in turn.
bool MultipliesWith(const tensorflow::Edge& edge) {
  static const auto* const products =
      new absl::flat_hash_set<std::string>({"MatMul", "_FusedMatMul", "BatchMatMulV2", "Einsum"});
  return edge.dst_input() == kWeightOfProduct && products->contains(edge.dst()->type_string()) &&
         FindNativeKernel(*edge.dst()).share != nullptr;
}

template <typename Predicate>
uint32_t OutputsWhoseReaders(const tensorflow::Node& node, Predicate take_ropes) {
  uint32_t outputs = 0, others = 0;
  for (const tensorflow::Edge* edge : node.out_edges()) {
    if (edge->IsControlEdge()) continue;
    outputs |= uint32_t{1} << edge->src_output();
    if (!take_ropes(*edge)) others |= uint32_t{1} << edge->src_output();
  }
  return outputs & ~others;
}

// A tensor of the numbers of `x` from number `begin` on, in their memory.
Tensor Part(const Tensor& x, int64_t begin, const TensorShape& shape) {
  Tensor numbers, part;
  const bool fits = numbers.CopyFrom(x, TensorShape({x.NumElements()}));
  const bool is_whole = fits && part.CopyFrom(numbers.Slice(begin, begin + shape.num_elements()), shape);
  TF_DCHECK_OK(is_whole ? absl::OkStatus() : absl::InternalError("the caller has compared the sizes"));
  return part;
}

// How many bytes live as long as `part` does: of a part of a part, all that the first one is a part of.
int64_t BytesKept(Tensor* part) {
  return static_cast<int64_t>(tensorflow::DMAHelper::buffer(part)->root_buffer()->size());
}

Value RopeOf(Tensor part) {
  const tensorflow::DataType dtype = part.dtype();
  const TensorShape shape = part.shape();
  Value value = Value::Own(NewTensor(std::move(part)));
  return Value::Own(Rope::New(&value, 1, dtype, shape));
}

}  // namespace

uint32_t HandedOn(const tensorflow::Node& node) { return OutputsWhoseReaders(node, ReadsNoNumbers); }

uint32_t HandedOnOrMultipliedWith(const tensorflow::Node& node) {
  return OutputsWhoseReaders(node, [](const tensorflow::Edge& e) { return ReadsNoNumbers(e) || MultipliesWith(e); });
}

Value View(const Tensor& x, int64_t begin, const TensorShape& shape) { return RopeOf(Part(x, begin, shape)); }

bool ShareMemory(const NativeKernel& kernel, const Tensor& x, int64_t begin, const TensorShape& shape, bool is_given_up,
                 Value* output) {
  if (!kernel.may_share || shape.dims() == 0) return false;
  const int64_t bytes = shape.num_elements() * tensorflow::DataTypeSize(x.dtype());
  if (bytes < kSmallestRope) return false;
  Tensor part = Part(x, begin, shape);
  if (is_given_up && BytesKept(&part) / kMostTimesKept > bytes) return false;
  if (part.IsAligned()) {
    *output = Value::Own(NewTensor(std::move(part)));
    return true;
  }
  if ((kernel.ropes & 1) == 0) return false;
  *output = RopeOf(std::move(part));
  return true;
}

}  // namespace tensorflow_recursion
