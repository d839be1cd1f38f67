// Finds the variables that a run has to read only once, whichever frames read them.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_SHARED_READS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_SHARED_READS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "cc/base/ids.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// A variable that is read once. The program gets its handle as argument number `argument`, and FlowGraph::kernels
// [`kernel`] reads it.
struct SharedRead {
  int argument = 0;
  uint32_t kernel = 0;
};

struct SharedReads {
  std::vector<SharedRead> reads;
  // Which of `reads` a ReadVariableOp of a body stands for.
  std::map<NodeId, uint32_t> number_of;
};

// Finds the nodes of bodies that read a variable which the program has got as an argument. There are none if the graph
// has side effects other than checks and prints: one of these may write to the variable, or wait for somebody who does.
// Take for example
//   F(n, x) = x if n < 1 else F(n - 1, x * w)
// where w is a variable that F captures, so that its handle is an argument of the program, of F and of every call. All
// frames read the same value of w.
SharedReads FindSharedReads(const tensorflow::Graph& graph, const FlowGraph& flow);

// Has operators take the values from the run (Input::invariant), as they take an invariant from a recursion. A node
// that reads a variable goes if nobody else reads it. Merges, results, loops and calls still do, because they take
// nothing but tokens. `flow` is as KeepInvariants() leaves it; the nodes that `shared` names are still there.
absl::Status ShareReads(const SharedReads& shared, FlowGraph* flow);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_SHARED_READS_H_
