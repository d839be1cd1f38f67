// Finds out which argument of its function a value is, looking through operators that only let it through.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_ARGUMENT_TRACE_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_ARGUMENT_TRACE_H_

#include <vector>

#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// The way of a value from an argument to somebody who reads it. For example, in a loop in the true branch of a
// conditional a weight comes from its entry through a Switch and a constant Enter.
struct ArgumentTrace {
  // Where the argument enters the function's body; kNone if the value is not one of its arguments.
  NodeId entry;
  // Where the way begins: at that entry, or at whatever else makes the value.
  Source origin;
  // What else the value waits for in the reader's region: the sides of branches, for example.
  std::vector<Source> guards;
  // The nodes that let the value through, the reader's neighbour first: in the example the Enter, then the Switch.
  std::vector<NodeId> between;

  bool is_argument() const { return entry != kNone; }
};

ArgumentTrace TraceArgument(const FlowGraph& flow, Source source);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_ARGUMENT_TRACE_H_
