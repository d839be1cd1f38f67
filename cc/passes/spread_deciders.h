// Which device decides whether a call of a function lives, and on which devices the nodes of calls are.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_SPREAD_DECIDERS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_SPREAD_DECIDERS_H_

#include "cc/analysis/flow_graph.h"
#include "cc/passes/spread_boundaries.h"

namespace tensorflow_recursion {

// Whether some function has arguments on several devices, so that there is a choice of the one that decides.
bool HasSplitArguments(const Boundaries& boundaries);

// Fills in `late_arguments`: those that may come only after a side effect elsewhere. An effect of the same call counts
// too. `flow` is that of the whole graph. If its nodes form a cycle, no argument counts as late; the fault is reported
// where the graph is made a program.
void FindLateArguments(const FlowGraph& flow, Boundaries* boundaries);

// Fills in `decider`: the device with most of a function's arguments. An argument that may not be late counts for more
// than all that may: a device that has only late ones must not keep the others waiting. The order in which the side
// effects come may depend on them.
void ChooseDeciders(Boundaries* boundaries);

// Moves every Call to the device of its Entry, and every Return to that of its Result: they hand their value over
// within one device.
void AlignCalls(Boundaries* boundaries);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_SPREAD_DECIDERS_H_
