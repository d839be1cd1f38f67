// Kernels about shapes: they view a tensor under another shape, give shapes as tensors, and make or convert numbers.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "cc/native/native_table.h"
#include "cc/native/operands.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataType;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::TryGetNodeAttr;

// --- Views ----------------------------------------------------------------------------------------

// Inputs: a tensor or a number, the place of the new dimension of size 1. numbers[0] is the dtype of the place.
bool RunExpandDims(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  if (!inputs[1].is_scalar()) return false;
  int64_t axis = IntegerOf(inputs[1], static_cast<DataType>(kernel.numbers[0]));
  if (inputs[0].is_scalar()) {
    if (axis != 0 && axis != -1) return false;
    auto* const to = NewOutput<unsigned char>(kernel.dtype, TensorShape({1}), &outputs[0]);
    std::memcpy(to, &inputs[0].bits, tensorflow::DataTypeSize(kernel.dtype));
    return true;
  }
  const Tensor* const x = TensorIn(inputs[0]);
  if (x == nullptr) return false;
  if (axis < 0) axis += x->dims() + 1;
  if (axis < 0 || axis > x->dims()) return false;
  TensorShape shape = x->shape();
  shape.InsertDim(static_cast<int>(axis), 1);
  ViewAs(&inputs[0], shape, &outputs[0]);
  return true;
}

bool BindExpandDims(const tensorflow::Node& node, NativeKernel* kernel) {
  kernel->numbers[0] = node.input_type(1);
  kernel->run = RunExpandDims;
  return IsPlain(kernel->dtype) && IsUnboxed(kernel->dtype) && IsIndexType(node.input_type(1));
}

constexpr int kMostSqueezed = 32;

// Bit d of numbers[0] says that dimension d is dropped. If no bit is set, all dimensions of size 1 are dropped.
bool RunSqueeze(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const x = TensorIn(inputs[0]);
  if (x == nullptr || x->NumElements() == 0 || x->dims() > kMostSqueezed) return false;
  TensorShape shape;
  int64_t left = kernel.numbers[0];
  for (int d = 0; d < x->dims(); ++d) {
    const bool is_one = x->dim_size(d) == 1;
    const bool is_named = (kernel.numbers[0] >> d & 1) != 0;
    if (is_named && !is_one) return false;
    left &= ~(int64_t{1} << d);
    if (!is_named && !(is_one && kernel.numbers[0] == 0)) shape.AddDim(x->dim_size(d));
  }
  if (left != 0) return false;
  ViewAs(&inputs[0], shape, &outputs[0]);
  return true;
}

bool BindSqueeze(const tensorflow::Node& node, NativeKernel* kernel) {
  std::vector<int32_t> dimensions;
  if (!IsUnboxed(kernel->dtype) || !TryGetNodeAttr(node.attrs(), "squeeze_dims", &dimensions)) return false;
  for (const int32_t d : dimensions) {
    if (d < 0 || d >= kMostSqueezed) return false;
    kernel->numbers[0] |= int64_t{1} << d;
  }
  kernel->run = RunSqueeze;
  return true;
}

// Inputs: a tensor, a vector of sizes, one of which may be -1 for what is left.
bool RunReshape(const NativeKernel& /*kernel*/, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const x = TensorIn(inputs[0]);
  const Tensor* const sizes = TensorIn(inputs[1]);
  if (x == nullptr || sizes == nullptr || sizes->dims() != 1 || x->NumElements() == 0) return false;
  if (sizes->dim_size(0) > kMostDimensions) return false;
  int64_t known = 1;
  int unknown = -1;
  for (int d = 0; d < sizes->dim_size(0); ++d) {
    const int64_t size = IntegerAt(*sizes, d);
    if (size == 0 || size < -1 || size > kMostElements || (size == -1 && unknown >= 0)) return false;
    if (size == -1) {
      unknown = d;
    } else {
      known *= size;
    }
    if (known > kMostElements) return false;
  }
  if (x->NumElements() % known != 0 || (unknown < 0 && x->NumElements() != known)) return false;
  TensorShape shape;
  for (int d = 0; d < sizes->dim_size(0); ++d) {
    shape.AddDim(d == unknown ? x->NumElements() / known : IntegerAt(*sizes, d));
  }
  ViewAs(&inputs[0], shape, &outputs[0]);
  return true;
}

bool BindReshape(const tensorflow::Node& node, NativeKernel* kernel) {
  kernel->run = RunReshape;
  return IsUnboxed(kernel->dtype) && IsIndexType(node.input_type(1));
}

// numbers[0] is the rank, numbers[1] to numbers[4] are the sizes of the dimensions; -1 stands for what is not known.
constexpr int kMostEnsured = 4;

bool RunEnsureShape(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const TensorShape* const x = ShapeIn(inputs[0]);
  if (x == nullptr) return false;
  if (kernel.numbers[0] >= 0 && x->dims() != kernel.numbers[0]) return false;
  for (int d = 0; d < kernel.numbers[0]; ++d) {
    if (kernel.numbers[d + 1] >= 0 && x->dim_size(d) != kernel.numbers[d + 1]) return false;
  }
  HandOn(&inputs[0], &outputs[0]);
  return true;
}

bool BindEnsureShape(const tensorflow::Node& node, NativeKernel* kernel) {
  tensorflow::PartialTensorShape shape;
  if (!tensorflow::GetNodeAttr(node.attrs(), "shape", &shape).ok() || shape.dims() > kMostEnsured) return false;
  kernel->numbers[0] = shape.dims();
  for (int d = 0; d < shape.dims(); ++d) kernel->numbers[d + 1] = shape.dim_size(d);
  kernel->run = RunEnsureShape;
  return true;
}

// --- Shapes as tensors ----------------------------------------------------------------------------

// Whether each size fits into the type Index. A tensor without elements may have sizes that do not.
template <typename Index>
bool AreSizesIn(const TensorShape& x) {
  for (int d = 0; d < x.dims(); ++d) {
    if (x.dim_size(d) > std::numeric_limits<Index>::max()) return false;
  }
  return true;
}

template <typename Index>
bool WriteShapes(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  for (int i = 0; i < kernel.num_inputs; ++i) {
    const TensorShape* const x = ShapeIn(inputs[i]);
    if (x == nullptr || !AreSizesIn<Index>(*x)) return false;
  }
  for (int i = 0; i < kernel.num_inputs; ++i) {
    const TensorShape& x = *ShapeIn(inputs[i]);
    auto* const to = NewOutput<Index>(static_cast<DataType>(kernel.numbers[0]), TensorShape({x.dims()}), &outputs[i]);
    for (int d = 0; d < x.dims(); ++d) to[d] = static_cast<Index>(x.dim_size(d));
  }
  return true;
}

bool BindShape(const tensorflow::Node& node, NativeKernel* kernel) {
  if (node.num_outputs() == 0 || !IsPlain(kernel->dtype)) return false;
  kernel->numbers[0] = node.output_type(0);
  kernel->run = kernel->numbers[0] == tensorflow::DT_INT32 ? WriteShapes<int32_t> : WriteShapes<int64_t>;
  return IsIndexType(node.output_type(0));
}

// Makes *output the number that Size or Rank gives. numbers[0] is its dtype.
bool WriteNumber(const NativeKernel& kernel, int64_t number, Value* output) {
  const bool is_small = kernel.numbers[0] == tensorflow::DT_INT32;
  if (is_small && number > std::numeric_limits<int32_t>::max()) return false;
  *output = Value::Scalar(is_small ? static_cast<uint32_t>(number) : static_cast<uint64_t>(number));
  return true;
}

bool RunSize(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const TensorShape* const x = ShapeIn(inputs[0]);
  return x != nullptr && WriteNumber(kernel, x->num_elements(), &outputs[0]);
}

bool RunRank(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const TensorShape* const x = ShapeIn(inputs[0]);
  return x != nullptr && WriteNumber(kernel, x->dims(), &outputs[0]);
}

template <NativeFunction function>
bool BindNumber(const tensorflow::Node& node, NativeKernel* kernel) {
  kernel->numbers[0] = node.output_type(0);
  kernel->run = function;
  return IsPlain(kernel->dtype) && IsIndexType(node.output_type(0));
}

// Inputs: the axis, and the shapes of tensors that are to be concatenated along it. Outputs: where each of them begins.
bool RunConcatOffset(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  if (!inputs[0].is_scalar()) return false;
  const int count = kernel.num_outputs;
  for (int i = 1; i <= count; ++i) {
    const Tensor* const shape = TensorIn(inputs[i]);
    if (shape == nullptr || shape->dims() != 1 || shape->shape() != inputs[1].tensor_or_null()->shape()) return false;
  }
  const Tensor& first = *inputs[1].tensor_or_null();
  const int64_t dims = first.dim_size(0);
  const int64_t axis = inputs[0].int32 < 0 ? inputs[0].int32 + dims : inputs[0].int32;
  if (axis < 0 || axis >= dims) return false;
  for (int i = 2; i <= count; ++i) {
    for (int64_t d = 0; d < dims; ++d) {
      const Tensor& shape = *inputs[i].tensor_or_null();
      if (d != axis && DataOf<int32_t>(shape)[d] != DataOf<int32_t>(first)[d]) return false;
    }
  }
  int32_t offset = 0;
  for (int i = 0; i < count; ++i) {
    auto* const to = NewOutput<int32_t>(tensorflow::DT_INT32, first.shape(), &outputs[i]);
    std::fill_n(to, dims, 0);
    to[axis] = offset;
    offset += DataOf<int32_t>(*inputs[i + 1].tensor_or_null())[axis];
  }
  return true;
}

bool BindConcatOffset(const tensorflow::Node& node, NativeKernel* kernel) {
  kernel->run = RunConcatOffset;
  return node.input_type(1) == tensorflow::DT_INT32;
}

// --- New numbers ----------------------------------------------------------------------------------

template <typename T, int kNumber>
bool RunLike(const NativeKernel& /*kernel*/, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const x = TensorIn(inputs[0]);
  if (x == nullptr) return false;
  const int64_t count = x->NumElements();
  std::fill_n(ReuseOrNew<T>(&inputs[0], &outputs[0]), count, static_cast<T>(kNumber));
  return true;
}

template <int kNumber>
bool BindLike(const tensorflow::Node& /*node*/, NativeKernel* kernel) {
  if (kernel->dtype == tensorflow::DT_FLOAT) kernel->run = RunLike<float, kNumber>;
  if (kernel->dtype == tensorflow::DT_DOUBLE) kernel->run = RunLike<double, kNumber>;
  if (kernel->dtype == tensorflow::DT_INT32) kernel->run = RunLike<int32_t, kNumber>;
  if (kernel->dtype == tensorflow::DT_INT64) kernel->run = RunLike<int64_t, kNumber>;
  return true;
}

// Inputs: a vector of sizes, a number.
template <typename T>
bool RunFill(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const sizes = TensorIn(inputs[0]);
  if (sizes == nullptr || sizes->dims() != 1 || !inputs[1].is_scalar()) return false;
  if (sizes->dim_size(0) == 0 || sizes->dim_size(0) > kMostDimensions) return false;
  TensorShape shape;
  for (int d = 0; d < sizes->dim_size(0); ++d) {
    const int64_t size = IntegerAt(*sizes, d);
    if (size < 0 || size > kMostElements || shape.num_elements() * size > kMostElements) return false;
    shape.AddDim(size);
  }
  T number;
  std::memcpy(&number, &inputs[1].bits, sizeof(T));
  std::fill_n(NewOutput<T>(kernel.dtype, shape, &outputs[0]), shape.num_elements(), number);
  return true;
}

bool BindFill(const tensorflow::Node& node, NativeKernel* kernel) {
  if (!IsIndexType(node.input_type(0))) return false;
  if (kernel->dtype == tensorflow::DT_FLOAT) kernel->run = RunFill<float>;
  if (kernel->dtype == tensorflow::DT_DOUBLE) kernel->run = RunFill<double>;
  if (kernel->dtype == tensorflow::DT_INT32) kernel->run = RunFill<int32_t>;
  if (kernel->dtype == tensorflow::DT_INT64) kernel->run = RunFill<int64_t>;
  return true;
}

template <typename From, typename To>
bool RunCast(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const x = TensorIn(inputs[0]);
  if (x == nullptr) return false;
  const From* const from = DataOf<From>(*x);
  To* const to = NewOutput<To>(kernel.dtype, x->shape(), &outputs[0]);
  for (int64_t i = 0; i < x->NumElements(); ++i) to[i] = static_cast<To>(from[i]);
  return true;
}

template <typename From>
NativeFunction CastTo(DataType to) {
  switch (to) {
    case tensorflow::DT_FLOAT:
      return RunCast<From, float>;
    case tensorflow::DT_DOUBLE:
      return RunCast<From, double>;
    case tensorflow::DT_INT32:
      return std::is_floating_point_v<From> ? nullptr : RunCast<From, int32_t>;
    case tensorflow::DT_INT64:
      return std::is_floating_point_v<From> ? nullptr : RunCast<From, int64_t>;
    default:
      return nullptr;
  }
}

// Casts from floats to integers are left to the stock kernel, which decides what becomes of numbers out of range.
bool BindCast(const tensorflow::Node& node, NativeKernel* kernel) {
  bool truncates = false;  // instead of rounding
  if (TryGetNodeAttr(node.attrs(), "Truncate", &truncates) && truncates) return false;
  kernel->dtype = node.output_type(0);
  switch (node.input_type(0)) {
    case tensorflow::DT_BOOL:
      kernel->run = CastTo<bool>(kernel->dtype);
      return true;
    case tensorflow::DT_INT32:
      kernel->run = CastTo<int32_t>(kernel->dtype);
      return true;
    case tensorflow::DT_INT64:
      kernel->run = CastTo<int64_t>(kernel->dtype);
      return true;
    case tensorflow::DT_FLOAT:
      kernel->run = CastTo<float>(kernel->dtype);
      return true;
    case tensorflow::DT_DOUBLE:
      kernel->run = CastTo<double>(kernel->dtype);
      return true;
    default:
      return false;
  }
}

}  // namespace

void AddShapeKernels(NativeTable* table) {
  table->insert({{"ExpandDims", BindExpandDims},
                 {"Squeeze", BindSqueeze},
                 {"Reshape", BindReshape},
                 {"EnsureShape", BindEnsureShape},
                 {"Shape", BindShape},
                 {"ShapeN", BindShape},
                 {"Size", BindNumber<RunSize>},
                 {"Rank", BindNumber<RunRank>},
                 {"ConcatOffset", BindConcatOffset},
                 {"ZerosLike", BindLike<0>},
                 {"OnesLike", BindLike<1>},
                 {"Fill", BindFill},
                 {"Cast", BindCast}});
}

}  // namespace tensorflow_recursion
