// Turns the graphs of a program into lists of nodes that have the names of the final graph.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_FLATTEN_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_FLATTEN_H_

#include "absl/status/status.h"
#include "cc/expand/call_program.h"
#include "cc/expand/name_table.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Fills in `program->main`. The nodes keep their names, which are taken from then on.
void FlattenMain(const tensorflow::Graph& main, GraphNames* names, CallProgram* program);

// Fills in `body`, `arguments`, `outputs` and `effects` of all functions, which lose their graphs. It must be known
// which functions have effects. InvalidArgument if a body's loops are malformed.
absl::Status FlattenBodies(GraphNames* names, CallProgram* program);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_FLATTEN_H_
