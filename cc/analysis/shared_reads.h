// Finds the variables that all frames of a recursion can read at once, when it is entered.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_SHARED_READS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_SHARED_READS_H_

#include <map>
#include <vector>

#include "absl/status/status.h"
#include "cc/analysis/flow_graph.h"
#include "cc/base/ids.h"

namespace tensorflow_recursion {

// The nodes of bodies that read a variable which is always the same argument of the program, with the number of that.
using VariableReaders = std::map<NodeId, int>;

// Finds them. There are none if bodies have side effects other than checks and prints: one of these may write to the
// variable while the recursion goes on, or wait for somebody who does. What the main graph writes comes before a call
// or after it. Take for example
//   F(n, x) = x if n < 1 else F(n - 1, x * w)
// where w is a variable that F captures, so that its handle is an argument of the program, of F and of every call. All
// frames below a call read the same value of w.
VariableReaders FindVariableReaders(const FlowGraph& flow);

// Has the call that enters a recursion read the variables whose handles are invariants, and operators take the values
// as further invariants (FlowRecursion::reads). Merges, results, loops and calls take nothing but tokens:
// they get the value from a node that only passes it on. `flow` is as KeepInvariants() leaves it, and `readers` as they
// were before. Sets `read` to the variables that are read so. All of them have to be readable when a run begins,
// because a frame that would have failed to read one may never come.
absl::Status ShareReads(const VariableReaders& readers, FlowGraph* flow, std::vector<ArgumentRead>* read);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_SHARED_READS_H_
