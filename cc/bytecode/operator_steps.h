// Which instruction computes an operator.
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

  Opcode of_registers;
  Opcode with_constant;  // as the second operand
  bool is_commutative = false;
  std::optional<Opcode> swapped;  // with_constant of the operator that says the same with operands exchanged: > of <
  bool may_be_special = false;    // needs its kernel at times
};

// nullopt: there is no instruction of its own.
std::optional<BinaryInstructions> FindBinaryInstructions(const std::string& op, tensorflow::DataType dtype);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_OPERATOR_STEPS_H_
