// Side effects across calls: which functions have them, and who waits for gradients because of them.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_SIDE_EFFECTS_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_SIDE_EFFECTS_H_

#include "cc/expand/call_program.h"
#include "cc/expand/name_table.h"

namespace tensorflow_recursion {

// Says of a function that it has effects, or reads state, if a function does that it calls. Gradients do neither.
void SpreadEffects(CallProgram* program);

// Removes control edges out of gradient calls, records and contributions that order no side effect. TensorFlow lets the
// nodes of a branch wait for each other as if gradients had side effects, and the wait for a gradient call would be for
// all of its outputs, asked for or not. Edges to side effects outside of gradients stay, direct or not: an assignment
// must not change what the gradient before it reads. So do those that a user must have written: out of a gradient that
// is computed for nothing else, as that of `tf.group(dx)` is, and that TensorFlow has not inlined with a branch.
//
// A node that such an edge has kept in its branch or iteration, a constant for example, gets edges from what the
// gradient is called with instead. Those live where the gradient call does, and do not wait for it.
void DropGradientWaits(NameTable* names, CallProgram* program);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_SIDE_EFFECTS_H_
