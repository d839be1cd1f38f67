// The variables of a loop: where each starts, and what it becomes.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_LOOP_VARIABLES_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_LOOP_VARIABLES_H_

#include <optional>
#include <vector>

#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

struct LoopVariable {
  NodeId entry;               // its value in an iteration
  Input start;                // read around the loop
  std::optional<Input> next;  // read in the iteration before; nullopt if it never changes
};

std::vector<LoopVariable> VariablesOf(const FlowGraph& flow, const FlowLoop& loop);

// Whether the loop is made of such variables alone, all of which live in every iteration.
bool IsSimpleLoop(const FlowGraph& flow, const FlowLoop& loop);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_LOOP_VARIABLES_H_
