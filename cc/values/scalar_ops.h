// Arithmetic on numbers that travel unboxed: what TensorFlow's kernels compute for rank 0 tensors.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_SCALAR_OPS_H_
#define TENSORFLOW_RECURSION_CC_VALUES_SCALAR_OPS_H_

#include <cstdint>
#include <string>

#include "cc/values/value.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {

// Reads its operands from consecutive Values and writes *out, which is then of kind kScalar. Returns false when the
// kernel has to compute the result, for example for operands that are no scalars, division by zero, NaN operands of
// Minimum and Maximum, or casts and indices out of range.
using ScalarFunction = bool (*)(const Value* in, Value* out);

// The same for compiled code, whose operands are certainly numbers. There are exceptions: the first operand of a
// GatherV2 is the address of a tensor, and the function of an AddN adds two numbers, however many terms the AddN has.
// Operators of fewer than three operands ignore the others.
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
