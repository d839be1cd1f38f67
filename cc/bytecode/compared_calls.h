// Lets calls make the comparison that their callee begins with.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_COMPARED_CALLS_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_COMPARED_CALLS_H_

#include "cc/bytecode/code.h"

namespace tensorflow_recursion {

// Most calls of a recursive function end at once: half of fib's, three quarters of tak's. A function whose first
// instruction is a ReturnUnless needs no frame for that. Its calls become CallIf instructions, which make the
// comparison where the arguments are, in the caller's frame, and go on in the callee behind its first instruction.
//
// For code whose functions are complete.
void CompareBeforeCalls(Code* code);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_COMPARED_CALLS_H_
