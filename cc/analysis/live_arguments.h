// Finds the arguments that live in every frame of their function.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_LIVE_ARGUMENTS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_LIVE_ARGUMENTS_H_

#include <vector>

#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// Says of each entry whether its argument is live wherever any argument of the same call is. A call opens a frame if
// only one of its arguments lives; of f(x, Switch(y)), the second may be dead in the frame, and the first is not.
// `order` is SortNodes' answer.
IdVector<NodeId, bool> FindLiveArguments(const FlowGraph& flow, const std::vector<NodeId>& order);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_LIVE_ARGUMENTS_H_
