// Arithmetic on numbers that travel unboxed: what TensorFlow's kernels compute for rank 0 tensors.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_SCALAR_OPS_H_
#define TENSORFLOW_RECURSION_CC_VALUES_SCALAR_OPS_H_

#include <string>

#include "cc/values/value.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {

// Reads its operands from consecutive Values and writes *out, which is of kind kScalar. Returns false
// when the kernel must decide: operands that are no scalars, division by zero, NaN operands of min and
// max, casts out of range, indices out of range.
using ScalarFunction = bool (*)(const Value* in, Value* out);

// The function for operator `op` on the given input and output dtypes, or nullptr if there is none.
ScalarFunction FindScalarFunction(const std::string& op, const tensorflow::DataTypeVector& inputs,
                                  const tensorflow::DataTypeVector& outputs);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_SCALAR_OPS_H_
