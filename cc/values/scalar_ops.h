// Arithmetic on numbers that travel unboxed: what TensorFlow's kernels compute for rank 0 tensors.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_SCALAR_OPS_H_
#define TENSORFLOW_RECURSION_CC_VALUES_SCALAR_OPS_H_

#include <cstdint>
#include <string>

#include "cc/values/value.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {

// Reads its operands from consecutive Values and writes *out, which is of kind kScalar. Returns false
// when the kernel must decide: operands that are no scalars, division by zero, NaN operands of min and
// max, casts out of range, indices out of range.
using ScalarFunction = bool (*)(const Value* in, Value* out);

// The same for operands that are surely numbers, as compiled code has them. A GatherV2's first operand is the address
// of a tensor. An AddN's adds two terms, however many it has. Operators of fewer operands ignore the others.
using NumberFunction = bool (*)(uint64_t x, uint64_t y, uint64_t z, uint64_t* out);

// The two forms of an operator, both nullptr if there is none.
struct ScalarOperator {
  ScalarFunction on_values = nullptr;
  NumberFunction on_numbers = nullptr;
};

// Operator `op` on the given input and output dtypes.
ScalarOperator FindScalarOperator(const std::string& op, const tensorflow::DataTypeVector& inputs,
                                  const tensorflow::DataTypeVector& outputs);

inline ScalarFunction FindScalarFunction(const std::string& op, const tensorflow::DataTypeVector& inputs,
                                         const tensorflow::DataTypeVector& outputs) {
  return FindScalarOperator(op, inputs, outputs).on_values;
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_SCALAR_OPS_H_
