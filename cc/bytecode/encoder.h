// Writes steps as instructions.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_ENCODER_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_ENCODER_H_

#include "cc/bytecode/code_builder.h"
#include "cc/bytecode/steps.h"

namespace tensorflow_recursion {

// Writes the steps of one function. The caller has called the builder's Begin(), and calls its End() afterwards.
void Encode(const FunctionSteps& function, CodeBuilder* builder);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_ENCODER_H_
