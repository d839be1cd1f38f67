// Keeps control edges that order side effects, where a path leads through a call, out of Grappler's hands.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_KEEP_WAITS_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_KEEP_WAITS_H_

#include "absl/status/status.h"
#include "cc/expand/call_program.h"
#include "cc/expand/name_table.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Grappler takes a control edge out where a path of other nodes orders the same. Of
//
//     y = f(x, after_assignment)
//     with tf.control_dependencies([assign, y]):
//       value = v.read_value()
//
// it keeps only the edge from the call. But a call returns before all of its arguments have come if its result does not
// need them, and then `value` would be read before the assignment. Grappler never counts an edge out of a Merge as part
// of a path, nor takes one out. So a constant waits for `assign`, a Merge reads the constant, and `value` waits for the
// Merge. This is done where a call may come after the first node, and the second one after a call.
//
// A node that waits for all side effects of a body is left as it is: it gets its waits back after Grappler
// (cc/passes/restore_waits.h). To be called after SpreadEffects().
void KeepWaits(NameTable* names, CallProgram* program);

// The same for a main graph before Grappler, whose first iteration sees calls as single nodes. Every call is taken to
// have side effects.
absl::Status KeepWaits(tensorflow::Graph* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_KEEP_WAITS_H_
