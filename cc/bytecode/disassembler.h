// Prints compiled functions for people to read.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_DISASSEMBLER_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_DISASSEMBLER_H_

#include <string>

#include "cc/bytecode/code.h"

namespace tensorflow_recursion {

// Writes a line for the function, and one for each instruction: its number within the function, its name, its operands.
std::string Disassemble(const Code& code, const CodeFunction& function);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_DISASSEMBLER_H_
