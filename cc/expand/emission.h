// Writes the transformed graph, with calls expanded, and the body of each reachable function once.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_EMISSION_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_EMISSION_H_

#include <cstdint>

#include "cc/base/options.h"
#include "cc/expand/call_program.h"
#include "cc/expand/name_table.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace tensorflow_recursion {

// Appends the reachable nodes of `program` to `graph`. `first_call_id` is the first id that is free. Each node says in
// attribute `_recursion_body` which function's body it is part of. Only if the main graph holds bodies of an earlier
// transformation, its nodes keep the attribute that they have.
void Emit(const CallProgram& program, const Options& options, int64_t first_call_id, NameTable* names,
          tensorflow::GraphDef* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_EMISSION_H_
