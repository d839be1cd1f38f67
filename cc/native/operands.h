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

// Larger tensors are left to the stock kernel, which divides them among threads.
inline constexpr int64_t kMostElements = 1 << 16;
inline constexpr int kMostDimensions = 6;

// Whether values of this dtype are plain bytes, which memcpy may copy.
inline bool IsPlain(tensorflow::DataType dtype) {
  return tensorflow::DataTypeCanUseMemcpy(dtype) && !tensorflow::IsRefType(dtype);
}

// The tensor that a value owns or points to, if native kernels serve its size; else nullptr. Tensors of rank 0 are left
// to stock kernels: they hold what is never unboxed, or share memory with others and must stay tensors.
inline const tensorflow::Tensor* TensorIn(const Value& value) {
  const tensorflow::Tensor* const tensor = value.tensor_or_null();
  if (tensor == nullptr || tensor->dims() == 0 || tensor->NumElements() > kMostElements) return nullptr;
  return tensor->IsInitialized() ? tensor : nullptr;
}

// The shape of the tensor (of rank 1 or more) or rope that a value holds, of any size; nullptr if it holds neither.
inline const tensorflow::TensorShape* ShapeIn(const Value& value) {
  if (value.kind == Value::Kind::kRope) return &value.rope->shape();
  const tensorflow::Tensor* const tensor = value.tensor_or_null();
  return tensor == nullptr || tensor->dims() == 0 || !tensor->IsInitialized() ? nullptr : &tensor->shape();
}

template <typename T>
const T* DataOf(const tensorflow::Tensor& tensor) {
  return static_cast<const T*>(tensor.data());
}

// Unlike Tensor::flat(), these accept memory that is not aligned, as that of a slice of another tensor.
template <typename T>
T* MutableDataOf(tensorflow::Tensor* tensor) {
  return static_cast<T*>(tensor->data());
}

// An input of a kernel that is a tensor or a number of type T.
template <typename T>
struct Operand {
  const tensorflow::Tensor* tensor;  // nullptr: it is a number
  const T* data;
  int64_t size;

  // Returns false if `value` is neither. `value` must outlive the Operand, which may point to its number.
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

// Makes *output a new tensor in memory of the pool, and returns its numbers, which are not initialized.
template <typename T>
T* NewOutput(tensorflow::DataType dtype, const tensorflow::TensorShape& shape, Value* output) {
  *output = Value::Own(NewPooledTensor(dtype, shape));
  return MutableDataOf<T>(output->tensor);
}

// Whether `value` is a tensor that nobody else can see.
inline bool IsUnshared(const Value& value) {
  return value.kind == Value::Kind::kTensor && value.tensor->RefCountIsOne();
}

// Makes *output a tensor of the shape and dtype of `input`'s tensor, and returns its numbers. If nobody else can see
// that tensor, *output takes it over with its numbers, and `input` is left empty.
template <typename T>
T* ReuseOrNew(Value* input, Value* output) {
  if (IsUnshared(*input)) {
    *output = input->Take();
    return MutableDataOf<T>(output->tensor);
  }
  const tensorflow::Tensor& like = *input->tensor_or_null();
  return NewOutput<T>(like.dtype(), like.shape(), output);
}

// Makes *output the tensor of `input` under another shape of as many elements; for rank 0 the number, if its dtype is
// an unboxed one.
void ViewAs(Value* input, const tensorflow::TensorShape& shape, Value* output);

// Makes *output an owned Value of what `input` is; leaves `input` empty if that owned something.
inline void HandOn(Value* input, Value* output) {
  *output = input->owns() ? input->Take() : input->Copy().Escape();
  if (output->kind == Value::Kind::kConstant) *output = Value::Own(NewTensor(*output->constant));
}

// Element `index` of a vector of int32 or int64, and a number of either type.
inline int64_t IntegerAt(const tensorflow::Tensor& vector, int64_t index) {
  return vector.dtype() == tensorflow::DT_INT32 ? DataOf<int32_t>(vector)[index] : DataOf<int64_t>(vector)[index];
}
inline int64_t IntegerOf(const Value& number, tensorflow::DataType dtype) {
  return dtype == tensorflow::DT_INT32 ? number.int32 : number.int64;
}
inline bool IsIndexType(tensorflow::DataType dtype) {
  return dtype == tensorflow::DT_INT32 || dtype == tensorflow::DT_INT64;
}

// Adds a dimension of `size` elements to a shape that has some. Returns false if there are too many then, or none.
inline bool AddSize(int64_t size, tensorflow::TensorShape* shape) {
  if (size < 1 || size > kMostElements / shape->num_elements()) return false;
  shape->AddDim(size);
  return true;
}

// Reads a shape of 1 to kMostDimensions dimensions that a vector holds. Returns false for any other, and where there
// are no elements or more than kMostElements.
inline bool ReadSizes(const Value& value, tensorflow::TensorShape* shape) {
  const tensorflow::Tensor* const sizes = TensorIn(value);
  if (sizes == nullptr || sizes->dims() != 1 || sizes->dim_size(0) > kMostDimensions) return false;
  for (int64_t d = 0; d < sizes->dim_size(0); ++d) {
    if (!AddSize(IntegerAt(*sizes, d), shape)) return false;
  }
  return shape->dims() > 0;
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_NATIVE_OPERANDS_H_
