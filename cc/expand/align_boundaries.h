// Puts the arguments and outputs of functions where their values cross devices least.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_ALIGN_BOUNDARIES_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_ALIGN_BOUNDARIES_H_

#include "cc/expand/call_program.h"

namespace tensorflow_recursion {

// Moves arguments to where they are read and outputs to where they are made, in bodies whose nodes have devices
// already. Handles stay where they are, because the Placer has put their readers beside them.
void AlignBoundaries(CallProgram* program);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_ALIGN_BOUNDARIES_H_
