// Finds operators in bodies that compute the same in all frames of a recursion.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_KEPT_RESULTS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_KEPT_RESULTS_H_

#include "absl/status/status.h"
#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// Finds the operators that make tensors of nothing but invariants, constants and results of other such operators. In
//   F(n, w) = n if n < 1 else F(n - 1, w) * transpose(w)
// every frame would transpose w, to the same matrix. Instead, the first frame that does it keeps the matrix beside the
// invariants, and the others take that (KernelNode::kept_results). The operator still fires in every frame, where and
// when it did: only its kernel does not run. There are none where an operator, also one in a function that a kernel
// calls, changes tensors in place, as InplaceAdd does, because it might change one that is kept.
//
// `flow` is as ShareReads() leaves it.
absl::Status FindKeptResults(FlowGraph* flow);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_KEPT_RESULTS_H_
