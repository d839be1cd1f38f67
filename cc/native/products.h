// The product of a few rows with a weight, for the kernels of operators that are such products.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_NATIVE_PRODUCTS_H_
#define TENSORFLOW_RECURSION_CC_NATIVE_PRODUCTS_H_

#include <cstdint>

#include "cc/native/native_kernel.h"

namespace tensorflow_recursion {

// The stock kernel multiplies more rows, and does what is too much work for one worker alone.
inline constexpr int64_t kMostRows = 8;
inline constexpr int64_t kMostMultiplications = int64_t{4} << 20;

// How many dimensions the factors of a product have: their own, and those that are summed over, which both have in the
// same order. Two matrices have 1 of each.
struct FactorDims {
  int own_of_x = 1, summed = 1, own_of_w = 1;
};

// Binds the product of x [own dimensions, summed ones] and w [summed dimensions, own ones], or of w [own dimensions,
// summed ones], which is transposed then. The result has the own dimensions of x and those of w.
void BindFactors(bool is_w_transposed, const FactorDims& dims, NativeKernel* kernel);

// What BindFactors binds, for float or double. It uses numbers[0] to numbers[3].
template <typename T>
bool RunProduct(const NativeKernel& kernel, const NativeContext& context, Value* inputs, Value* outputs);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_NATIVE_PRODUCTS_H_
