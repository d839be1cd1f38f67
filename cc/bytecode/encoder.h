// Writes steps as instructions.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_ENCODER_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_ENCODER_H_

#include "cc/bytecode/code_builder.h"
#include "cc/bytecode/steps.h"

namespace tensorflow_recursion {

// Between Begin() and End() of the builder.
void Encode(const FunctionSteps& function, CodeBuilder* builder);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_ENCODER_H_
