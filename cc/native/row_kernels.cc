// Kernels that copy pieces of tensors, or share their memory: concatenation, slices, parts.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cc/base/names.h"
#include "cc/native/native_table.h"
#include "cc/native/operands.h"
#include "cc/native/views.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/util/overflow.h"

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

// How many bytes a tensor has whose dimension `axis` has `size` elements, and whose others are those of `shape`; a
// negative number if that, or `size`, is more than an int64 holds.
int64_t BytesWith(int64_t size, int axis, const TensorShape& shape, int64_t element) {
  int64_t bytes = tensorflow::MultiplyWithoutOverflow(size, element);
  for (int d = 0; d < shape.dims(); ++d) {
    if (d != axis) bytes = tensorflow::MultiplyWithoutOverflow(bytes, shape.dim_size(d));
  }
  return size < 0 ? size : bytes;
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
    size = tensorflow::AddWithoutOverflow(size, shapes[i]->dim_size(dimension));
  }
  const int64_t element = tensorflow::DataTypeSize(kernel.dtype);
  const int64_t bytes = BytesWith(size, dimension, shape, element);
  if (bytes < 0 || bytes > Rope::MostBytes()) return false;
  shape.set_dim(dimension, size);
  if (kernel.ropes != 0 && LieInOrder(shape, dimension) && bytes >= kSmallestRope) {
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

// Calls copy(offset in the whole, offset in the box, bytes) for each run of numbers of `box` that lie side by side both
// in a tensor of shape `whole` and in the box.
template <typename Copy>
void ForEachRun(const TensorShape& whole, const Box& box, int64_t element, Copy copy) {
  int inner = whole.dims() - 1;  // the box has all of the dimensions behind this one
  int64_t run = element;
  while (inner > 0 && box.size[inner] == whole.dim_size(inner)) run *= whole.dim_size(inner--);
  const int64_t stride = run;
  run *= box.size[inner];
  int64_t runs = 1;
  for (int d = 0; d < inner; ++d) runs *= box.size[d];
  for (int64_t i = 0; i < runs; ++i) {
    int64_t left = i, offset = box.begin[inner], scale = whole.dim_size(inner);
    for (int d = inner - 1; d >= 0; --d) {
      offset += (box.begin[d] + left % box.size[d]) * scale;
      left /= box.size[d];
      scale *= whole.dim_size(d);
    }
    copy(offset * stride, i * run, run);
  }
}

// Copies the numbers of `box` in `from` to `to`.
void CopyBox(const Tensor& from, const Box& box, int64_t element, Byte* to) {
  const Byte* const data = DataOf<Byte>(from);
  ForEachRun(from.shape(), box, element,
             [&](int64_t whole, int64_t part, int64_t bytes) { std::memcpy(to + part, data + whole, bytes); });
}

// Writes a tensor of this shape to `to`: zeros, but for `box`, whose numbers are at `from`.
void WriteBoxAmongZeros(const Byte* from, const Box& box, int64_t element, const TensorShape& shape, Byte* to) {
  std::memset(to, 0, shape.num_elements() * element);
  ForEachRun(shape, box, element,
             [&](int64_t whole, int64_t part, int64_t bytes) { std::memcpy(to + whole, from + part, bytes); });
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

// Whether these are where dimensions begin and end, and their strides, for a tensor of this shape.
bool AreRanges(const Tensor* const* ranges, const TensorShape& shape) {
  for (int i = 0; i < 3; ++i) {
    if (ranges[i] == nullptr || ranges[i]->dims() != 1 || ranges[i]->dim_size(0) > shape.dims()) return false;
    if (ranges[i]->dim_size(0) != ranges[0]->dim_size(0)) return false;
  }
  return true;
}

// The masks have a bit for each dimension: numbers[0] says that it is taken from its beginning on, numbers[1] that it
// is taken up to its end, numbers[2] that only the element at `begin` is taken, and the dimension dropped.
bool ReadStrided(const NativeKernel& kernel, const TensorShape& x, const Tensor* const* ranges, Box* box,
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

// Whether the numbers of `box` lie side by side in `from`, in which they then begin at number *begin.
bool IsInOnePiece(const Tensor& from, const Box& box, int64_t* begin) {
  bool is_cut = false;  // whether the box has several elements of a dimension further out
  *begin = 0;
  for (int d = 0; d < from.dims(); ++d) {
    if (is_cut && box.size[d] != from.dim_size(d)) return false;
    is_cut = is_cut || box.size[d] > 1;
    *begin = *begin * from.dim_size(d) + box.begin[d];
  }
  return true;
}

// Inputs: a tensor of any size, where each dimension begins and ends, its stride.
bool RunStridedSlice(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const x = inputs[0].tensor_or_null();
  const Tensor* const ranges[3] = {TensorIn(inputs[1]), TensorIn(inputs[2]), TensorIn(inputs[3])};
  if (x == nullptr || x->dims() == 0 || x->dims() > kMostDimensions || !x->IsInitialized()) return false;
  if (!AreRanges(ranges, x->shape())) return false;
  Box box;
  TensorShape shape;
  if (!ReadStrided(kernel, x->shape(), ranges, &box, &shape)) return false;
  const int64_t element = tensorflow::DataTypeSize(kernel.dtype);
  if (shape.dims() == 0) {
    if (!IsUnboxed(kernel.dtype)) return false;
    outputs[0] = Value::Scalar(0);
    CopyBox(*x, box, element, reinterpret_cast<Byte*>(&outputs[0].bits));
    return true;
  }
  int64_t begin = 0;
  if (IsInOnePiece(*x, box, &begin) && ShareMemory(kernel, *x, begin, shape, IsGivenUp(inputs[0]), &outputs[0])) {
    return true;
  }
  if (shape.num_elements() > kMostElements) return false;
  CopyBox(*x, box, element, NewOutput<Byte>(kernel.dtype, shape, &outputs[0]));
  return true;
}

bool ReadMasks(const tensorflow::Node& node, NativeKernel* kernel) {
  int64_t ellipsis_mask = 0, new_axis_mask = 0;
  const auto attrs = node.attrs();
  if (!TryGetNodeAttr(attrs, "ellipsis_mask", &ellipsis_mask) || ellipsis_mask != 0) return false;
  if (!TryGetNodeAttr(attrs, "new_axis_mask", &new_axis_mask) || new_axis_mask != 0) return false;
  return TryGetNodeAttr(attrs, "begin_mask", &kernel->numbers[0]) &&
         TryGetNodeAttr(attrs, "end_mask", &kernel->numbers[1]) &&
         TryGetNodeAttr(attrs, "shrink_axis_mask", &kernel->numbers[2]);
}

bool BindStridedSlice(const tensorflow::Node& node, NativeKernel* kernel) {
  kernel->ropes = HandedOnOrMultipliedWith(node);
  kernel->run = RunStridedSlice;
  return IsPlain(kernel->dtype) && IsIndexType(node.input_type(1)) && ReadMasks(node, kernel);
}

// --- Gradients of parts ---------------------------------------------------------------------------

// The bytes of a value that is a tensor or a number; nullptr if it is neither, or not of this shape.
const Byte* BytesOfShape(const Value& value, const TensorShape& shape) {
  if (value.is_scalar()) return shape.dims() == 0 ? reinterpret_cast<const Byte*>(&value.bits) : nullptr;
  const Tensor* const tensor = TensorIn(value);
  return tensor != nullptr && tensor->shape() == shape ? DataOf<Byte>(*tensor) : nullptr;
}

// Inputs: the shape of what was sliced, where each dimension begins and ends, its stride, the gradient of the slice.
bool RunStridedSliceGrad(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  TensorShape whole, part;
  const Tensor* const ranges[3] = {TensorIn(inputs[1]), TensorIn(inputs[2]), TensorIn(inputs[3])};
  Box box;
  if (!ReadSizes(inputs[0], &whole) || !AreRanges(ranges, whole)) return false;
  if (!ReadStrided(kernel, whole, ranges, &box, &part)) return false;
  const Byte* const from = BytesOfShape(inputs[4], part);
  if (from == nullptr) return false;
  const int64_t element = tensorflow::DataTypeSize(kernel.dtype);
  WriteBoxAmongZeros(from, box, element, whole, NewOutput<Byte>(kernel.dtype, whole, &outputs[0]));
  return true;
}

bool BindStridedSliceGrad(const tensorflow::Node& node, NativeKernel* kernel) {
  kernel->run = RunStridedSliceGrad;
  return IsIndexType(node.input_type(0)) && IsPlain(kernel->dtype) && ReadMasks(node, kernel);
}

// Inputs: a tensor, and for each of its dimensions how many zeros come before and after it.
bool RunPad(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const x = TensorIn(inputs[0]);
  const Tensor* const paddings = TensorIn(inputs[1]);
  if (x == nullptr || paddings == nullptr || x->NumElements() == 0 || x->dims() > kMostDimensions) return false;
  if (paddings->shape() != TensorShape({x->dims(), 2})) return false;
  TensorShape shape;
  Box box;
  for (int d = 0; d < x->dims(); ++d) {
    const int64_t before = IntegerAt(*paddings, int64_t{2} * d), after = IntegerAt(*paddings, int64_t{2} * d + 1);
    if (before < 0 || after < 0 || before > kMostElements || after > kMostElements) return false;
    box.begin[d] = before;
    box.size[d] = x->dim_size(d);
    if (!AddSize(before + box.size[d] + after, &shape)) return false;
  }
  const int64_t element = tensorflow::DataTypeSize(kernel.dtype);
  WriteBoxAmongZeros(DataOf<Byte>(*x), box, element, shape, NewOutput<Byte>(kernel.dtype, shape, &outputs[0]));
  return true;
}

bool BindPad(const tensorflow::Node& node, NativeKernel* kernel) {
  kernel->run = RunPad;
  return IsPlain(kernel->dtype) && IsIndexType(node.input_type(1));
}

// --- Cuts -----------------------------------------------------------------------------------------

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

}  // namespace

void AddRowKernels(NativeTable* table) {
  table->insert({{"ConcatV2", BindConcat},
                 {"Pack", BindPack},
                 {"Slice", BindSlice},
                 {"StridedSlice", BindStridedSlice},
                 {"StridedSliceGrad", BindStridedSliceGrad},
                 {"Pad", BindPad},
                 {"Split", BindSplit<RunSplit>},
                 {"SplitV", BindSplitV},
                 {kConcatGradientOp, BindConcatGradient}});
}

}  // namespace tensorflow_recursion
