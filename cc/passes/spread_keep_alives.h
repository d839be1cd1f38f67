// Removes the nodes that only keep others from being pruned.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_SPREAD_KEEP_ALIVES_H_
#define TENSORFLOW_RECURSION_CC_PASSES_SPREAD_KEEP_ALIVES_H_

#include "absl/status/status.h"
#include "cc/analysis/regions.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Removes the KeepAlives, the nodes that bring their tokens into loops, and the inputs of Returns. The Returns that had
// inputs are replaced by new nodes of the same names. `regions` are those of the graph before. InvalidArgument if
// another node reads a token.
absl::Status DropKeepAlives(const GraphRegions& regions, tensorflow::Graph* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_SPREAD_KEEP_ALIVES_H_
