// Chooses the device that decides whether a call of a function lives, and the devices of the nodes of calls.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_SPREAD_DECIDERS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_SPREAD_DECIDERS_H_

#include "cc/analysis/flow_graph.h"
#include "cc/passes/spread_boundaries.h"

namespace tensorflow_recursion {

// Whether some function has arguments on several devices, so that there is a choice of the one that decides.
bool HasSplitArguments(const Boundaries& boundaries);

// Fills in `late_arguments`: those that may come only after a side effect, which may be in another frame, and even in
// the call itself. `flow` is that of the whole graph. If its nodes form a cycle, no argument counts as late; the fault
// is reported where the graph is made a program.
void FindLateArguments(const FlowGraph& flow, Boundaries* boundaries);

// Fills in `decider`: the device with most of a function's arguments. One argument that is never late counts for more
// than all late ones together, because a device that has only late arguments must not keep the others waiting: side
// effects of the call would be delayed, and a late argument may even wait for one of these.
void ChooseDeciders(Boundaries* boundaries);

// Moves every Call to the device of its Entry, and every Return to that of its Result: they hand their value over
// within one device.
void AlignCalls(Boundaries* boundaries);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_SPREAD_DECIDERS_H_
