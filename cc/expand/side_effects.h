// Follows side effects across calls: finds the functions that have them, and who need not wait for gradients.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_SIDE_EFFECTS_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_SIDE_EFFECTS_H_

#include "cc/expand/call_program.h"
#include "cc/expand/name_table.h"

namespace tensorflow_recursion {

// Marks a function as having effects, or as reading state, if a function that it calls does. Gradients do neither.
void SpreadEffects(CallProgram* program);

// Removes control edges that lead out of gradient calls, records and contributions and order no side effect. TensorFlow
// lets the nodes of a branch wait for one another as if gradients had side effects, and to wait for a gradient call
// would be to wait for all of its outputs, even for those that nobody asks for.
//
// Two kinds of such edges stay. Those on the way to a side effect outside of gradients do, because an assignment must
// not change what the gradient before it reads. And those do that a user must have written: if a gradient is computed
// for nothing else than such a wait, as in `tf.group(dx)`, and TensorFlow has not inlined it with a branch.
//
// A gradient may come after a side effect, as one of a call that waits for an assignment does. Whoever no longer waits
// for the gradient waits for that side effect instead.
//
// Some nodes, such as constants, were kept in their branch or iteration only by such an edge. They get edges from what
// the gradient is called with instead, which lives where the gradient call does.
void DropGradientWaits(NameTable* names, CallProgram* program);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_SIDE_EFFECTS_H_
