// How native kernels read values and make new ones.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_NATIVE_OPERANDS_H_
#define TENSORFLOW_RECURSION_CC_NATIVE_OPERANDS_H_

#include <cstdint>
#include <cstring>

#include "cc/native/native_kernel.h"
#include "cc/values/rope.h"
#include "cc/values/tensor_memory.h"
#include "cc/values/value.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow_recursion {

// What is larger is for the stock kernel, which divides it among threads.
inline constexpr int64_t kMostElements = 1 << 16;
inline constexpr int kMostDimensions = 6;

// Types whose values are plain bytes.
inline bool IsPlain(tensorflow::DataType dtype) {
  return tensorflow::DataTypeCanUseMemcpy(dtype) && !tensorflow::IsRefType(dtype);
}

// The tensor that a value holds or points to, of a size that native kernels serve; else nullptr. Numbers of variables,
// which are tensors of rank 0, are for stock kernels: what shares their memory must stay a tensor.
inline const tensorflow::Tensor* TensorIn(const Value& value) {
  const tensorflow::Tensor* const tensor = value.tensor_or_null();
  if (tensor == nullptr || tensor->dims() == 0 || tensor->NumElements() > kMostElements) return nullptr;
  return tensor->IsInitialized() ? tensor : nullptr;
}

// The shape of the tensor or rope that a value holds, of any size; else nullptr.
inline const tensorflow::TensorShape* ShapeIn(const Value& value) {
  if (value.kind == Value::Kind::kRope) return &value.rope->shape();
  const tensorflow::Tensor* const tensor = value.tensor_or_null();
  return tensor == nullptr || tensor->dims() == 0 || !tensor->IsInitialized() ? nullptr : &tensor->shape();
}

template <typename T>
const T* DataOf(const tensorflow::Tensor& tensor) {
  return static_cast<const T*>(tensor.data());
}

// Its memory is not aligned if it is a slice of another tensor.
template <typename T>
T* MutableDataOf(tensorflow::Tensor* tensor) {
  return static_cast<T*>(tensor->data());
}

// A tensor, or a number, of type T.
template <typename T>
struct Operand {
  const tensorflow::Tensor* tensor;  // nullptr: a number
  const T* data;
  int64_t size;

  // False if `value` is neither. `value` must outlive it.
  bool Read(const Value& value) {
    if (value.is_scalar()) {
      tensor = nullptr;
      data = reinterpret_cast<const T*>(&value.bits);
      size = 1;
      return true;
    }
    tensor = TensorIn(value);
    if (tensor == nullptr) return false;
    data = DataOf<T>(*tensor);
    size = tensor->NumElements();
    return true;
  }

  int dims() const { return tensor == nullptr ? 0 : tensor->dims(); }
  int64_t dim_size(int d) const { return tensor->dim_size(d); }
};

// Makes *output a tensor of the pool, and returns its numbers.
template <typename T>
T* NewOutput(tensorflow::DataType dtype, const tensorflow::TensorShape& shape, Value* output) {
  *output = Value::Own(NewPooledTensor(dtype, shape));
  return MutableDataOf<T>(output->tensor);
}

// Whether `value` is a tensor that nobody else can see.
inline bool IsUnshared(const Value& value) {
  return value.kind == Value::Kind::kTensor && value.tensor->RefCountIsOne();
}

// The same, of the shape and dtype of `input`'s tensor, in its memory if nobody else can see it: then `input` is left
// empty.
template <typename T>
T* ReuseOrNew(Value* input, Value* output) {
  if (IsUnshared(*input)) {
    *output = input->Take();
    return MutableDataOf<T>(output->tensor);
  }
  const tensorflow::Tensor& like = *input->tensor_or_null();
  return NewOutput<T>(like.dtype(), like.shape(), output);
}

// Makes *output the tensor of `input` under another shape of as many elements. A number if the rank is 0.
void ViewAs(Value* input, const tensorflow::TensorShape& shape, Value* output);

// Makes *output what `input` is; leaves `input` empty if it owns something.
inline void HandOn(Value* input, Value* output) {
  *output = input->owns() ? input->Take() : input->Copy().Escape();
  if (output->kind == Value::Kind::kConstant) *output = Value::Own(NewTensor(*output->constant));
}

// Element `index` of a vector, or a number, of int32 or int64.
inline int64_t IntegerAt(const tensorflow::Tensor& vector, int64_t index) {
  return vector.dtype() == tensorflow::DT_INT32 ? DataOf<int32_t>(vector)[index] : DataOf<int64_t>(vector)[index];
}
inline int64_t IntegerOf(const Value& number, tensorflow::DataType dtype) {
  return dtype == tensorflow::DT_INT32 ? number.int32 : number.int64;
}
inline bool IsIndexType(tensorflow::DataType dtype) {
  return dtype == tensorflow::DT_INT32 || dtype == tensorflow::DT_INT64;
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_NATIVE_OPERANDS_H_
