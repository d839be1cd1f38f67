// Kernels that copy pieces of tensors: concatenation, slices, rows, also of variables.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "cc/base/names.h"
#include "cc/native/native_table.h"
#include "cc/native/operands.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::TryGetNodeAttr;
using Byte = unsigned char;

constexpr int kMostParts = 16;

// The product of the sizes of dimensions [begin, end).
int64_t CountOf(const TensorShape& shape, int begin, int end) {
  int64_t count = 1;
  for (int d = begin; d < end; ++d) count *= shape.dim_size(d);
  return count;
}

// --- Ropes ------------------------------------------------------------------------------------------

// Whether the reader at the end of this edge needs none of the value's numbers.
bool ReadsNoNumbers(const tensorflow::Edge& edge) {
  static const auto* const carriers = new absl::flat_hash_set<std::string>(
      {"Merge", "Identity", "EnsureShape", "ConcatV2", "Switch", "Enter", "NextIteration", "Exit", "Shape", "ShapeN",
       "Size", "Rank", kCallOp, kReturnOp, kResultOp, kRetainOp});
  return edge.IsControlEdge() || carriers->contains(edge.dst()->type_string());
}

// Which outputs (bit i stands for output i) are only handed on: to a caller, a callee, out of a branch, or into a
// larger concatenation. Where the body itself reads the numbers, nothing is gained by copying them later. The node has
// at most kMostParts outputs.
uint32_t HandedOn(const tensorflow::Node& node) {
  uint32_t outputs = 0, read = 0;
  for (const tensorflow::Edge* edge : node.out_edges()) {
    if (edge->IsControlEdge()) continue;
    outputs |= uint32_t{1} << edge->src_output();
    if (!ReadsNoNumbers(*edge)) read |= uint32_t{1} << edge->src_output();
  }
  return outputs & ~read;
}

// Whether the parts of a tensor of this shape that is cut along `axis` lie one behind the other in memory.
bool LieInOrder(const TensorShape& shape, int axis) { return CountOf(shape, 0, axis) == 1; }

// --- Concatenation --------------------------------------------------------------------------------

bool FitTogether(const TensorShape& a, const TensorShape& b, int axis) {
  if (a.dims() != b.dims()) return false;
  for (int d = 0; d < a.dims(); ++d) {
    if (d != axis && a.dim_size(d) != b.dim_size(d)) return false;
  }
  return true;
}

// Copies the parts side by side. Each part has `outer` rows, and so has the result, whose row i consists of the rows i
// of the parts. A number has `element` bytes.
void CopyParts(const Tensor* const* parts, int count, int axis, int64_t element, int64_t outer, Byte* to) {
  int64_t row = 0;
  for (int i = 0; i < count; ++i) row += CountOf(parts[i]->shape(), axis, parts[i]->dims()) * element;
  for (int i = 0; i < count; ++i) {
    const int64_t bytes = CountOf(parts[i]->shape(), axis, parts[i]->dims()) * element;
    const Byte* from = DataOf<Byte>(*parts[i]);
    for (int64_t j = 0; j < outer; ++j) std::memcpy(to + j * row, from + j * bytes, bytes);
    to += bytes;
  }
}

// Inputs: the parts, the axis. numbers[0] is the dtype of the axis. Parts without elements, which may have no data, are
// left to the stock kernel, but in ropes.
bool RunConcat(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const int count = kernel.num_inputs - 1;
  if (!inputs[count].is_scalar()) return false;
  const TensorShape* shapes[kMostParts];
  for (int i = 0; i < count; ++i) {
    shapes[i] = ShapeIn(inputs[i]);
    if (shapes[i] == nullptr) return false;
  }
  TensorShape shape = *shapes[0];
  int64_t axis = IntegerOf(inputs[count], static_cast<tensorflow::DataType>(kernel.numbers[0]));
  if (axis < 0) axis += shape.dims();
  if (axis < 0 || axis >= shape.dims()) return false;
  const int dimension = static_cast<int>(axis);
  int64_t size = 0;
  bool have_numbers = true;
  for (int i = 0; i < count; ++i) {
    if (!FitTogether(shape, *shapes[i], dimension)) return false;
    have_numbers = have_numbers && shapes[i]->num_elements() > 0;
    size += shapes[i]->dim_size(dimension);
  }
  shape.set_dim(dimension, size);
  const int64_t element = tensorflow::DataTypeSize(kernel.dtype);
  if (kernel.ropes != 0 && LieInOrder(shape, dimension) && shape.num_elements() * element >= kSmallestRope) {
    outputs[0] = Value::Own(Rope::New(inputs, count, kernel.dtype, shape));
    return true;
  }
  if (!have_numbers || shape.num_elements() > kMostElements) return false;
  const Tensor* parts[kMostParts];
  for (int i = 0; i < count; ++i) {
    inputs[i].Flatten();
    parts[i] = inputs[i].tensor_or_null();
  }
  CopyParts(parts, count, dimension, element, CountOf(shape, 0, dimension),
            NewOutput<Byte>(kernel.dtype, shape, &outputs[0]));
  return true;
}

bool BindConcat(const tensorflow::Node& node, NativeKernel* kernel) {
  if (!IsPlain(kernel->dtype) || node.num_inputs() < 2 || node.num_inputs() > kMostParts + 1) return false;
  kernel->numbers[0] = node.input_type(node.num_inputs() - 1);
  kernel->ropes = HandedOn(node);
  kernel->run = RunConcat;
  return true;
}

// Inputs: the parts. numbers[0] is the axis, which the result has in addition to those of the parts.
bool RunPack(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const int count = kernel.num_inputs;
  const int64_t element = tensorflow::DataTypeSize(kernel.dtype);
  if (inputs[0].is_scalar()) {
    if (kernel.numbers[0] != 0 && kernel.numbers[0] != -1) return false;
    for (int i = 0; i < count; ++i) {
      if (!inputs[i].is_scalar()) return false;
    }
    Byte* const to = NewOutput<Byte>(kernel.dtype, TensorShape({count}), &outputs[0]);
    for (int i = 0; i < count; ++i) std::memcpy(to + i * element, &inputs[i].bits, element);
    return true;
  }
  const Tensor* parts[kMostParts];
  for (int i = 0; i < count; ++i) {
    parts[i] = TensorIn(inputs[i]);
    if (parts[i] == nullptr || parts[i]->NumElements() == 0 || parts[i]->shape() != parts[0]->shape()) return false;
  }
  TensorShape shape = inputs[0].tensor_or_null()->shape();
  const int axis = static_cast<int>(kernel.numbers[0] < 0 ? kernel.numbers[0] + shape.dims() + 1 : kernel.numbers[0]);
  if (axis < 0 || axis > shape.dims() || shape.num_elements() * count > kMostElements) return false;
  const int64_t outer = CountOf(shape, 0, axis);
  shape.InsertDim(axis, count);
  CopyParts(parts, count, axis, element, outer, NewOutput<Byte>(kernel.dtype, shape, &outputs[0]));
  return true;
}

bool BindPack(const tensorflow::Node& node, NativeKernel* kernel) {
  if (!IsPlain(kernel->dtype) || node.num_inputs() < 1 || node.num_inputs() > kMostParts) return false;
  if (!TryGetNodeAttr(node.attrs(), "axis", &kernel->numbers[0])) return false;
  kernel->run = RunPack;
  return true;
}

// --- Parts of a tensor ----------------------------------------------------------------------------

// A part of a tensor: in dimension d, size[d] elements from begin[d] on. ReadSlice and ReadStrided make it.
struct Box {
  int64_t begin[kMostDimensions];
  int64_t size[kMostDimensions];
};

// Copies the numbers of `box` in `from` to `to`: at once as many as lie side by side in both.
void CopyBox(const Tensor& from, const Box& box, int64_t element, Byte* to) {
  const int dims = from.dims();
  int inner = dims - 1;  // the box has all of the dimensions behind this one
  int64_t run = element;
  while (inner > 0 && box.size[inner] == from.dim_size(inner)) run *= from.dim_size(inner--);
  const int64_t stride = run;
  run *= box.size[inner];
  int64_t runs = 1;
  for (int d = 0; d < inner; ++d) runs *= box.size[d];
  const Byte* const data = DataOf<Byte>(from);
  for (int64_t i = 0; i < runs; ++i, to += run) {
    int64_t left = i, offset = box.begin[inner], scale = from.dim_size(inner);
    for (int d = inner - 1; d >= 0; --d) {
      offset += (box.begin[d] + left % box.size[d]) * scale;
      left /= box.size[d];
      scale *= from.dim_size(d);
    }
    std::memcpy(to, data + offset * stride, run);
  }
}

bool ReadSlice(const Tensor& x, const Tensor& begin, const Tensor& size, Box* box, TensorShape* shape, bool* is_all) {
  *is_all = true;
  for (int d = 0; d < x.dims(); ++d) {
    box->begin[d] = IntegerAt(begin, d);
    box->size[d] = IntegerAt(size, d);
    if (box->begin[d] < 0) return false;
    const int64_t left = x.dim_size(d) - box->begin[d];
    if (box->size[d] == -1) box->size[d] = left;
    if (box->size[d] < 1 || box->size[d] > left) return false;
    if (box->size[d] == x.dim_size(d)) continue;
    shape->set_dim(d, box->size[d]);
    *is_all = false;
  }
  return true;
}

// Inputs: a tensor, where the slice begins, how large it is (-1: up to the end).
bool RunSlice(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const x = TensorIn(inputs[0]);
  const Tensor* const begin = TensorIn(inputs[1]);
  const Tensor* const size = TensorIn(inputs[2]);
  if (x == nullptr || begin == nullptr || size == nullptr || x->dims() > kMostDimensions) return false;
  if (begin->dims() != 1 || size->dims() != 1 || begin->dim_size(0) != x->dims()) return false;
  if (size->dim_size(0) != x->dims()) return false;
  Box box;
  TensorShape shape = x->shape();
  bool is_all = false;
  if (!ReadSlice(*x, *begin, *size, &box, &shape, &is_all)) return false;
  if (is_all) {
    HandOn(&inputs[0], &outputs[0]);
  } else {
    CopyBox(*x, box, tensorflow::DataTypeSize(kernel.dtype), NewOutput<Byte>(kernel.dtype, shape, &outputs[0]));
  }
  return true;
}

bool BindSlice(const tensorflow::Node& node, NativeKernel* kernel) {
  kernel->run = RunSlice;
  return IsPlain(kernel->dtype) && IsIndexType(node.input_type(1));
}

// The masks have a bit for each dimension: numbers[0] says that it is taken from its beginning on, numbers[1] that it
// is taken up to its end, numbers[2] that only the element at `begin` is taken, and the dimension dropped.
bool ReadStrided(const NativeKernel& kernel, const Tensor& x, const Tensor* const* ranges, Box* box,
                 TensorShape* shape) {
  const auto given = static_cast<int>(ranges[0]->dim_size(0));
  for (int d = 0; d < x.dims(); ++d) {
    const int64_t extent = x.dim_size(d);
    box->begin[d] = 0;
    box->size[d] = extent;
    if (d < given) {
      if (IntegerAt(*ranges[2], d) != 1) return false;
      int64_t begin = IntegerAt(*ranges[0], d), end = IntegerAt(*ranges[1], d);
      if (begin < 0) begin += extent;
      if ((kernel.numbers[2] >> d & 1) != 0) {
        if (begin < 0 || begin >= extent) return false;
        box->begin[d] = begin;
        box->size[d] = 1;
        continue;
      }
      if (end < 0) end += extent;
      begin = (kernel.numbers[0] >> d & 1) != 0 ? 0 : std::clamp<int64_t>(begin, 0, extent);
      end = (kernel.numbers[1] >> d & 1) != 0 ? extent : std::clamp<int64_t>(end, 0, extent);
      box->begin[d] = begin;
      box->size[d] = end - begin;
    }
    if (box->size[d] < 1) return false;
    shape->AddDim(box->size[d]);
  }
  return true;
}

// Inputs: a tensor, where each dimension begins and ends, its stride.
bool RunStridedSlice(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const x = TensorIn(inputs[0]);
  const Tensor* const ranges[3] = {TensorIn(inputs[1]), TensorIn(inputs[2]), TensorIn(inputs[3])};
  if (x == nullptr || x->dims() > kMostDimensions) return false;
  for (const Tensor* range : ranges) {
    if (range == nullptr || range->dims() != 1 || range->dim_size(0) > x->dims()) return false;
    if (range->dim_size(0) != ranges[0]->dim_size(0)) return false;
  }
  Box box;
  TensorShape shape;
  if (!ReadStrided(kernel, *x, ranges, &box, &shape)) return false;
  const int64_t element = tensorflow::DataTypeSize(kernel.dtype);
  if (shape.dims() == 0) {
    if (!IsUnboxed(kernel.dtype)) return false;
    outputs[0] = Value::Scalar(0);
    CopyBox(*x, box, element, reinterpret_cast<Byte*>(&outputs[0].bits));
  } else {
    CopyBox(*x, box, element, NewOutput<Byte>(kernel.dtype, shape, &outputs[0]));
  }
  return true;
}

bool BindStridedSlice(const tensorflow::Node& node, NativeKernel* kernel) {
  int64_t ellipsis_mask = 0, new_axis_mask = 0;
  const auto attrs = node.attrs();
  if (!IsPlain(kernel->dtype) || !IsIndexType(node.input_type(1))) return false;
  if (!TryGetNodeAttr(attrs, "ellipsis_mask", &ellipsis_mask) || ellipsis_mask != 0) return false;
  if (!TryGetNodeAttr(attrs, "new_axis_mask", &new_axis_mask) || new_axis_mask != 0) return false;
  kernel->run = RunStridedSlice;
  return TryGetNodeAttr(attrs, "begin_mask", &kernel->numbers[0]) &&
         TryGetNodeAttr(attrs, "end_mask", &kernel->numbers[1]) &&
         TryGetNodeAttr(attrs, "shrink_axis_mask", &kernel->numbers[2]);
}

// The numbers of `x` from number `begin` on, as a rope that shares their memory.
Value View(const Tensor& x, int64_t begin, const TensorShape& shape) {
  Tensor numbers, view;
  const bool fits = numbers.CopyFrom(x, TensorShape({x.NumElements()}));
  const bool is_whole = fits && view.CopyFrom(numbers.Slice(begin, begin + shape.num_elements()), shape);
  TF_DCHECK_OK(is_whole ? absl::OkStatus() : absl::InternalError("the caller has compared the sizes"));
  Value part = Value::Own(NewTensor(std::move(view)));
  return Value::Own(Rope::New(&part, 1, x.dtype(), shape));
}

// Cuts `x`, whose shape is `shape`, along `axis` into parts of the given sizes.
bool Cut(const NativeKernel& kernel, Value* x, const TensorShape& shape, int64_t axis, const int64_t* sizes,
         Value* outputs) {
  const auto dimension = static_cast<int>(axis);
  const uint32_t ropes = LieInOrder(shape, dimension) ? kernel.ropes : 0;
  if (ropes == 0 && shape.num_elements() > kMostElements) return false;
  const int64_t element = tensorflow::DataTypeSize(kernel.dtype);
  const int64_t inner = CountOf(shape, dimension + 1, shape.dims()) * element;
  const int64_t outer = CountOf(shape, 0, dimension);
  const int64_t row = shape.dim_size(dimension) * inner;
  const Tensor whole = x->kind == Value::Kind::kRope ? x->rope->View() : *x->tensor_or_null();
  TensorShape part = shape;
  int64_t begin = 0;
  for (int i = 0; i < kernel.num_outputs; ++i) {
    part.set_dim(dimension, sizes[i]);
    const int64_t bytes = sizes[i] * inner;
    if ((ropes >> i & 1) != 0 && bytes >= kSmallestRope) {
      outputs[i] = View(whole, begin / element, part);
    } else {
      Byte* const to = NewOutput<Byte>(kernel.dtype, part, &outputs[i]);
      const Byte* const from = DataOf<Byte>(whole) + begin;
      for (int64_t j = 0; j < outer; ++j) std::memcpy(to + j * bytes, from + j * row, bytes);
    }
    begin += bytes;
  }
  return true;
}

// Inputs: the axis, a tensor to be cut into equal parts.
bool RunSplit(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const TensorShape* const x = ShapeIn(inputs[1]);
  if (x == nullptr || x->num_elements() == 0 || !inputs[0].is_scalar()) return false;
  const int64_t axis = inputs[0].int32 < 0 ? inputs[0].int32 + x->dims() : inputs[0].int32;
  if (axis < 0 || axis >= x->dims() || x->dim_size(static_cast<int>(axis)) % kernel.num_outputs != 0) return false;
  int64_t sizes[kMostParts];
  std::fill_n(sizes, kernel.num_outputs, x->dim_size(static_cast<int>(axis)) / kernel.num_outputs);
  return Cut(kernel, &inputs[1], TensorShape(*x), axis, sizes, outputs);
}

// Inputs: a tensor, the sizes of its parts, the axis.
bool RunSplitV(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const TensorShape* const x = ShapeIn(inputs[0]);
  const Tensor* const given = TensorIn(inputs[1]);
  if (x == nullptr || given == nullptr || given->dims() != 1 || !inputs[2].is_scalar()) return false;
  const int64_t axis = inputs[2].int32 < 0 ? inputs[2].int32 + x->dims() : inputs[2].int32;
  if (axis < 0 || axis >= x->dims() || given->dim_size(0) != kernel.num_outputs) return false;
  int64_t sizes[kMostParts];
  int64_t left = x->dim_size(static_cast<int>(axis));
  for (int i = 0; i < kernel.num_outputs; ++i) {
    sizes[i] = IntegerAt(*given, i);
    if (sizes[i] < 1 || sizes[i] > left) return false;
    left -= sizes[i];
  }
  return left == 0 && Cut(kernel, &inputs[0], TensorShape(*x), axis, sizes, outputs);
}

// The sizes of a tensor's dimensions, which are given by the tensor itself or by a vector that holds them.
struct Sizes {
  const TensorShape* shape;  // the tensor's, or the vector's
  const int32_t* numbers;    // the vector's numbers; nullptr if the tensor itself is given

  // Reads them from `value`, which is a vector of sizes if `is_shape`. Returns false if it can't be read.
  bool Read(const Value& value, bool is_shape) {
    shape = ShapeIn(value);
    if (shape == nullptr || (is_shape && (shape->dims() != 1 || value.tensor_or_null() == nullptr))) return false;
    numbers = is_shape ? DataOf<int32_t>(*value.tensor_or_null()) : nullptr;
    return true;
  }

  int64_t dims() const { return numbers != nullptr ? shape->dim_size(0) : shape->dims(); }
  int64_t operator[](int d) const { return numbers != nullptr ? numbers[d] : shape->dim_size(d); }
};

// Whether a tensor of these sizes is a piece of one of shape `x` along `axis`.
bool IsPieceOf(const TensorShape& x, int64_t axis, const Sizes& sizes) {
  if (sizes.dims() != x.dims() || sizes[static_cast<int>(axis)] < 1) return false;
  for (int d = 0; d < x.dims(); ++d) {
    if (d != axis && sizes[d] != x.dim_size(d)) return false;
  }
  return true;
}

// Inputs: the axis, the gradient of a concatenation, and for each of its parts the value or the shape. Bit i of
// numbers[0] says that part i is given by its shape.
bool RunConcatGradient(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const TensorShape* const x = ShapeIn(inputs[1]);
  if (x == nullptr || !inputs[0].is_scalar()) return false;
  const int64_t axis = inputs[0].int32 < 0 ? inputs[0].int32 + x->dims() : inputs[0].int32;
  if (axis < 0 || axis >= x->dims()) return false;
  int64_t sizes[kMostParts];
  int64_t left = x->dim_size(static_cast<int>(axis));
  for (int i = 0; i < kernel.num_outputs; ++i) {
    Sizes part;
    if (!part.Read(inputs[2 + i], (kernel.numbers[0] >> i & 1) != 0) || !IsPieceOf(*x, axis, part)) return false;
    sizes[i] = part[static_cast<int>(axis)];
    left -= sizes[i];
  }
  return left >= 0 && Cut(kernel, &inputs[1], TensorShape(*x), axis, sizes, outputs);
}

bool BindConcatGradient(const tensorflow::Node& node, NativeKernel* kernel) {
  std::vector<bool> are_shapes;
  if (!IsPlain(kernel->dtype) || node.num_outputs() > kMostParts) return false;
  if (!tensorflow::GetNodeAttr(node.attrs(), "are_shapes", &are_shapes).ok()) return false;
  // The stock kernel reports what is wrong with a node whose counts do not fit.
  if (are_shapes.size() + 2 != static_cast<size_t>(node.num_inputs())) return false;
  if (are_shapes.size() < static_cast<size_t>(node.num_outputs())) return false;
  for (int i = 0; i < node.num_outputs(); ++i) {
    if (are_shapes[i] && node.input_type(2 + i) != tensorflow::DT_INT32) return false;
    kernel->numbers[0] |= static_cast<int64_t>(are_shapes[i]) << i;
  }
  kernel->ropes = HandedOn(node);
  kernel->run = RunConcatGradient;
  return true;
}

template <NativeFunction function>
bool BindSplit(const tensorflow::Node& node, NativeKernel* kernel) {
  if (!IsPlain(kernel->dtype) || node.num_outputs() > kMostParts) return false;
  kernel->ropes = HandedOn(node);
  kernel->run = function;
  return true;
}

bool BindSplitV(const tensorflow::Node& node, NativeKernel* kernel) {
  return BindSplit<RunSplitV>(node, kernel) && IsIndexType(node.input_type(1));
}

// --- Rows -----------------------------------------------------------------------------------------

// Copies `count` rows of `params`, each of `row` bytes. Returns false if an index is not that of a row.
template <typename Index>
bool CopyRows(const Tensor& params, const Index* indices, int64_t count, int64_t row, Byte* to) {
  const int64_t rows = params.dim_size(0);
  const Byte* const from = DataOf<Byte>(params);
  for (int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<int64_t>(indices[i]);
    if (index < 0 || index >= rows) return false;
    std::memcpy(to + i * row, from + index * row, row);
  }
  return true;
}

template <typename Index>
bool Gather(const NativeKernel& kernel, const Tensor& params, const Value& indices, Value* output) {
  Operand<Index> operand;
  if (!operand.Read(indices) || operand.size == 0) return false;
  TensorShape shape;
  for (int d = 0; d < operand.dims(); ++d) shape.AddDim(operand.dim_size(d));
  for (int d = 1; d < params.dims(); ++d) shape.AddDim(params.dim_size(d));
  const int64_t row = CountOf(params.shape(), 1, params.dims()) * tensorflow::DataTypeSize(kernel.dtype);
  if (shape.num_elements() > kMostElements) return false;
  if (shape.dims() == 0) {
    *output = Value::Scalar(0);
    if (CopyRows(params, operand.data, 1, row, reinterpret_cast<Byte*>(&output->bits))) return true;
  } else if (CopyRows(params, operand.data, operand.size, row, NewOutput<Byte>(kernel.dtype, shape, output))) {
    return true;
  }
  output->Release();
  return false;
}

// Inputs: a tensor of any size, indices of its rows, and for GatherV2 the axis, which must be 0. numbers[0] is the
// dtype of the indices.
bool RunGather(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const params = inputs[0].tensor_or_null();
  if (params == nullptr || params->dims() == 0 || !params->IsInitialized() || params->NumElements() == 0) return false;
  if (kernel.num_inputs == 3 && (!inputs[2].is_scalar() || inputs[2].bits != 0)) return false;
  return kernel.numbers[0] == tensorflow::DT_INT32 ? Gather<int32_t>(kernel, *params, inputs[1], &outputs[0])
                                                   : Gather<int64_t>(kernel, *params, inputs[1], &outputs[0]);
}

bool BindGather(const tensorflow::Node& node, NativeKernel* kernel) {
  int64_t batch_dims = 0;
  if (!IsPlain(kernel->dtype) || !IsUnboxed(kernel->dtype) || !IsIndexType(node.input_type(1))) return false;
  if (TryGetNodeAttr(node.attrs(), "batch_dims", &batch_dims) && batch_dims != 0) return false;
  kernel->numbers[0] = node.input_type(1);
  kernel->run = RunGather;
  return true;
}

// Gathers rows of a variable, whose lock is held meanwhile. It serves only once a stock kernel has gathered from the
// variable, which sets copy_on_read_mode: the sign that sparse operators use it.
bool GatherFrom(tensorflow::Var* variable, const NativeKernel& kernel, const Value& indices, Value* output) {
  tensorflow::tf_shared_lock lock(*variable->mu());
  const Tensor& params = *variable->tensor();
  if (!variable->copy_on_read_mode.load() || !variable->is_initialized || params.dtype() != kernel.dtype) return false;
  if (params.dims() == 0 || !params.IsInitialized() || params.NumElements() == 0) return false;
  return kernel.numbers[0] == tensorflow::DT_INT32 ? Gather<int32_t>(kernel, params, indices, output)
                                                   : Gather<int64_t>(kernel, params, indices, output);
}

using VariablePointer = tensorflow::core::RefCountPtr<tensorflow::Var>;

// The variable that a handle names, or that it holds, as handles of TensorFlow 2 do; nullptr if it is not on this
// device.
VariablePointer FindVariable(const Value& value, const NativeContext& context) {
  const Tensor* const handle_tensor = value.tensor_or_null();
  if (handle_tensor == nullptr || handle_tensor->dtype() != tensorflow::DT_RESOURCE) return nullptr;
  if (handle_tensor->NumElements() != 1 || context.resources == nullptr || context.device == nullptr) return nullptr;
  const auto& handle = handle_tensor->flat<tensorflow::ResourceHandle>()(0);
  if (handle.device() != *context.device) return nullptr;
  tensorflow::Var* variable = nullptr;
  if (handle.IsRefCounting()) {
    const auto held = handle.GetResource<tensorflow::Var>();
    if (!held.ok()) return nullptr;
    variable = *held;
    variable->Ref();
  } else if (!context.resources->Lookup(handle.container(), handle.name(), &variable).ok()) {
    return nullptr;
  }
  return VariablePointer(variable);
}

// Inputs: a variable's handle, indices of rows. numbers[0] is the dtype of the indices.
bool RunResourceGather(const NativeKernel& kernel, const NativeContext& context, Value* inputs, Value* outputs) {
  const VariablePointer variable = FindVariable(inputs[0], context);
  return variable != nullptr && GatherFrom(variable.get(), kernel, inputs[1], &outputs[0]);
}

// Reads a variable without copying it. A variable in copy_on_read_mode, which sparse operators change in place, is left
// to the stock kernel, which copies it.
bool RunReadVariable(const NativeKernel& kernel, const NativeContext& context, Value* inputs, Value* outputs) {
  const VariablePointer variable = FindVariable(inputs[0], context);
  if (variable == nullptr) return false;
  tensorflow::tf_shared_lock lock(*variable->mu());
  const Tensor& tensor = *variable->tensor();
  if (variable->copy_on_read_mode.load() || !variable->is_initialized || tensor.dtype() != kernel.dtype) return false;
  if (!tensor.IsInitialized()) return false;
  outputs[0] = ValueFromTensor(NewTensor(tensor));
  return true;
}

bool BindReadVariable(const tensorflow::Node& /*node*/, NativeKernel* kernel) {
  kernel->run = RunReadVariable;
  return true;
}

bool BindResourceGather(const tensorflow::Node& node, NativeKernel* kernel) {
  if (!BindGather(node, kernel)) return false;
  kernel->run = RunResourceGather;
  return true;
}

}  // namespace

void AddRowKernels(NativeTable* table) {
  table->insert({{"ConcatV2", BindConcat},
                 {"Pack", BindPack},
                 {"Slice", BindSlice},
                 {"StridedSlice", BindStridedSlice},
                 {"Split", BindSplit<RunSplit>},
                 {"SplitV", BindSplitV},
                 {kConcatGradientOp, BindConcatGradient},
                 {"Gather", BindGather},
                 {"GatherV2", BindGather},
                 {"ResourceGather", BindResourceGather},
                 {"ReadVariableOp", BindReadVariable}});
}

}  // namespace tensorflow_recursion
