// Writes down, as attributes of nodes, what cannot be seen any more once a graph is in partitions.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_SPREAD_MARKS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_SPREAD_MARKS_H_

#include "cc/analysis/call_decisions.h"
#include "cc/analysis/regions.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Marks every node with the function whose body it is part of, see kBodyAttr. The nodes of the transformation are
// marked already; those that stock passes have added since then belong to the body that they are connected with.
void MarkOwners(const GraphRegions& regions, tensorflow::Graph* graph);

// Marks the nodes that begin, end and repeat partial loops, see kPartialLoopAttr.
void MarkPartialLoops(const GraphRegions& regions, const CallDecisions& decisions, tensorflow::Graph* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_SPREAD_MARKS_H_
