// Which device decides whether a call of a function lives, and on which devices the nodes of calls are.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_SPREAD_DECIDERS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_SPREAD_DECIDERS_H_

#include "cc/analysis/regions.h"
#include "cc/passes/spread_boundaries.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Fills in `late_arguments` where a function's arguments are on several devices: those that may come only after a side
// effect elsewhere. An effect of the same call counts too.
void FindLateArguments(const tensorflow::Graph& graph, const GraphRegions& regions, Boundaries* boundaries);

// Fills in `decider`: the device with most of a function's arguments. An argument that may not be late counts for more
// than all that may: a device that has only late ones must not keep the others waiting. The order in which the side
// effects come may depend on them.
void ChooseDeciders(Boundaries* boundaries);

// Moves every Call to the device of its Entry, and every Return to that of its Result: they hand their value over
// within one device.
void AlignCalls(Boundaries* boundaries);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_SPREAD_DECIDERS_H_
