// Tensors whose memory, and whose headers, come from the pool of blocks.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_TENSOR_MEMORY_H_
#define TENSORFLOW_RECURSION_CC_VALUES_TENSOR_MEMORY_H_

#include <new>
#include <utility>

#include "cc/values/block_pool.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow_recursion {

static_assert(sizeof(tensorflow::Tensor) == kHeaderBlockBytes, "headers are blocks of the smallest size");

// A new tensorflow::Tensor for a Value to own. It is freed by DeleteTensor.
template <typename... Arguments>
tensorflow::Tensor* NewTensor(Arguments&&... arguments) {
  return new (TakeBlock(sizeof(tensorflow::Tensor))) tensorflow::Tensor(std::forward<Arguments>(arguments)...);
}

inline void DeleteTensor(tensorflow::Tensor* tensor) {
  tensor->~Tensor();
  GiveBlock(tensor, sizeof(tensorflow::Tensor));
}

// The same tensor with a header from the pool. `made_by_new`, a header that a stock kernel has made by `new`, is
// deleted. It is not kept for the pool, which would then get more headers than are taken from it.
inline tensorflow::Tensor* AdoptTensor(tensorflow::Tensor* made_by_new) {
  tensorflow::Tensor* const tensor = NewTensor(std::move(*made_by_new));
  delete made_by_new;
  return tensor;
}

// A new tensor of uninitialized numbers in memory of the pool, to which the last reference gives the memory back. The
// dtype must be one of plain numbers.
tensorflow::Tensor PooledTensor(tensorflow::DataType dtype, const tensorflow::TensorShape& shape);
// The same with a header from the pool, for a Value to own.
tensorflow::Tensor* NewPooledTensor(tensorflow::DataType dtype, const tensorflow::TensorShape& shape);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_TENSOR_MEMORY_H_
