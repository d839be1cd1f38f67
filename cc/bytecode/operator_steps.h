// Finds the instruction that computes an operator.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_OPERATOR_STEPS_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_OPERATOR_STEPS_H_

#include <optional>
#include <string>

#include "cc/bytecode/instruction.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {

// The instructions of a binary operator on one dtype.
struct BinaryInstructions {
  BinaryInstructions(Opcode of_registers, Opcode with_constant)
      : of_registers(of_registers), with_constant(with_constant) {}

  // With two registers as operands, and with a constant as the second operand.
  Opcode of_registers;
  Opcode with_constant;
  bool is_commutative = false;
  // What computes the same with the operands exchanged, and a constant as the second one: for 2 < x it is x > 2.
  std::optional<Opcode> swapped;
  // The operator needs its kernel at times.
  bool may_be_special = false;
};
// Returns nullopt if the operator has no instruction of its own.
std::optional<BinaryInstructions> FindBinaryInstructions(const std::string& op, tensorflow::DataType dtype);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_OPERATOR_STEPS_H_
