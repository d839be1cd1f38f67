// Finds the arguments that live in every frame of their function.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_LIVE_ARGUMENTS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_LIVE_ARGUMENTS_H_

#include <vector>

#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// Says for each entry whether its argument is live wherever any argument of the same call is. A call opens a frame as
// soon as one of its arguments lives. For example, in a frame of f(x, Switch(y)) the second argument may be dead, while
// the first one is not. `order` is the result of SortNodes.
IdVector<NodeId, bool> FindLiveArguments(const FlowGraph& flow, const std::vector<NodeId>& order);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_LIVE_ARGUMENTS_H_
