// Which nodes, function outputs and side effects the fetches need: a fixpoint over all sections.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_REACHABILITY_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_REACHABILITY_H_

#include "cc/expand/call_program.h"

namespace tensorflow_recursion {

// Fills in the fields of `program` that say so. An output nobody asks for costs nothing: neither its Return nor
// the part of the body that only it needs is ever made.
void FindLiveness(CallProgram* program);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_REACHABILITY_H_
