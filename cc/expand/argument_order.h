// Lets calls wait for arguments that come after side effects.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_ARGUMENT_ORDER_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_ARGUMENT_ORDER_H_

#include "cc/expand/call_program.h"
#include "cc/expand/name_table.h"

namespace tensorflow_recursion {

// Lets a call wait for those of its arguments that wait for a side effect, if its body has side effects or reads state.
// For example, in
//
//   with tf.control_dependencies([v.assign(0)]):
//     y = f(tf.identity(x), v.handle)
//
// TensorFlow gives the control edge to the Identity alone, because the call waits for that anyway. But once each
// argument travels by itself, an operator of the body that reads only the handle would run before the assignment. So
// the call gets a control edge from the Identity. A body that has side effects also waits for arguments that wait for
// reads, as these must not see what it writes.
//
// Other calls go on as their arguments come, even if an argument is the result of a side effect, because nobody has
// asked for an order. To be called after SpreadEffects().
void OrderArguments(NameTable* names, CallProgram* program);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_ARGUMENT_ORDER_H_
