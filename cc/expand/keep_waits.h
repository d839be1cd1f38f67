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
// it keeps the edge from the call alone. But a call returns before all of its arguments have come if its result does
// not need them, and `value` would be read before the assignment. Grappler never counts an edge out of a Merge as part
// of a path, nor takes one out. So `assign`, if a call may come after it, is waited for by a constant and a Merge of
// it, and what comes after a call waits for that Merge.
//
// What waits for all side effects of a body is left as it is: it gets its waits back after Grappler
// (cc/passes/restore_waits.h). SpreadEffects has run.
void KeepWaits(NameTable* names, CallProgram* program);

// The same for a main graph before Grappler, whose first iteration sees calls as single nodes. Taken for granted is
// that every call has side effects.
absl::Status KeepWaits(tensorflow::Graph* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_KEEP_WAITS_H_
