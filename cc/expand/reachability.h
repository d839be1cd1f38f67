// Finds the nodes, function outputs and side effects that the fetches need: a fixpoint over all bodies.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_REACHABILITY_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_REACHABILITY_H_

#include "cc/expand/call_program.h"

namespace tensorflow_recursion {

// Fills in the fields of `program` that say what is needed. An output that nobody reads costs nothing: it has no
// Return, and the part of the body that serves only this output is left out.
void FindReachable(CallProgram* program);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_REACHABILITY_H_
