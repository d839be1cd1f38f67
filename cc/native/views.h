// Results that share the memory of an input instead of copying its numbers.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_NATIVE_VIEWS_H_
#define TENSORFLOW_RECURSION_CC_NATIVE_VIEWS_H_

#include <cstdint>

#include "cc/native/native_kernel.h"
#include "cc/values/value.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Which outputs (bit i stands for output i) are only handed on: to a caller, a callee, out of a branch, or into a
// larger concatenation. Where the body itself reads the numbers, nothing is gained by copying them later. The node has
// at most 32 outputs.
uint32_t HandedOn(const tensorflow::Node& node);

// Like HandedOn, but an output counts, too, if native products multiply with it: they read a weight wherever it lies.
uint32_t HandedOnOrMultipliedWith(const tensorflow::Node& node);

// The numbers of `x` from number `begin` on, as a rope that shares their memory.
Value View(const tensorflow::Tensor& x, int64_t begin, const tensorflow::TensorShape& shape);

// Makes output 0 of `kernel` the numbers of `x` from number `begin` on, without copying them, and returns true; or
// returns false if they have to be copied. `is_given_up` says that the memory of `x` may be kept by the output alone:
// then the output must be a large part of it.
//
// The output is a tensor if its memory is aligned as kernels expect it. For example, matrix 3 of 10 matrices of 300 x
// 300 floats is aligned, because 360,000 bytes are a multiple of 64. That of 150 x 150 floats is not; it is a rope if
// all readers take one.
bool ShareMemory(const NativeKernel& kernel, const tensorflow::Tensor& x, int64_t begin,
                 const tensorflow::TensorShape& shape, bool is_given_up, Value* output);

// Whether nobody but the frame that lends or gives the input has its tensor. Weights are somebody else's, too: of a
// variable, of a feed, or of the program, if they are constants.
inline bool IsGivenUp(const Value& input) {
  return input.kind != Value::Kind::kConstant && (input.owns() || input.tensor_or_null()->RefCountIsOne());
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_NATIVE_VIEWS_H_
