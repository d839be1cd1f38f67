// Finds the variables of a loop: where each starts, and what it becomes.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_LOOP_VARIABLES_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_LOOP_VARIABLES_H_

#include <optional>
#include <vector>

#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// A variable of a loop, as VariablesOf finds it.
struct LoopVariable {
  // The node that yields its value in an iteration.
  NodeId entry;
  // Its value in the first iteration, which is read around the loop.
  Input start;
  // Its value in the next iteration, which is read in the one before; nullopt if it never changes.
  std::optional<Input> next;
};

std::vector<LoopVariable> VariablesOf(const FlowGraph& flow, const FlowLoop& loop);

// Whether the loop is made of such variables alone, all of which live in every iteration.
bool IsSimpleLoop(const FlowGraph& flow, const FlowLoop& loop);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_LOOP_VARIABLES_H_
