// Finds out which argument of its function a value is, behind what only lets it through.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_ARGUMENT_TRACE_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_ARGUMENT_TRACE_H_

#include <vector>

#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// The way of a value from an argument to somebody who reads it. For example, in a loop in the true branch of a
// conditional a weight comes from its entry through a Switch and a constant Enter.
struct ArgumentTrace {
  NodeId entry;                 // of the function; kNone if the value is not one of its arguments
  std::vector<Source> guards;   // in the reader's region: what else the value waits for, as the sides of branches
  std::vector<NodeId> between;  // what lets the value through, the reader's neighbour first

  bool is_argument() const { return entry != kNone; }
};

ArgumentTrace TraceArgument(const FlowGraph& flow, Source source);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_ARGUMENT_TRACE_H_
