// Finds the devices that have a part of a function's body, and so frames of it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_SPREAD_HOSTS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_SPREAD_HOSTS_H_

#include "cc/analysis/regions.h"
#include "cc/passes/spread_boundaries.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Fills in `hosts`. A caller has frames wherever its callees have, as these have to be opened from there.
void FindHosts(const tensorflow::Graph& graph, const GraphRegions& regions, Boundaries* boundaries);

// Whether more than one device has bodies or structural nodes (cc/analysis/structural_nodes.h). The latter count,
// because a KeepAlive's token to another device would be sent, and the send would be taken for a part of the program.
bool IsSpread(const tensorflow::Graph& graph, const GraphRegions& regions, const Boundaries& boundaries);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_SPREAD_HOSTS_H_
