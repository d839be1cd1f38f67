// Says when a flow node fires, and so what a frame has to keep for it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_FIRING_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_FIRING_H_

#include <cstddef>

#include "cc/analysis/flow_graph.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// Pending counts and input positions are held in 16 bits.
inline constexpr size_t kMaxInputs = 0xffff;

// Whether operators of this kind fire from a queue. A value that reaches one of another kind goes straight on.
inline bool Fires(OpKind kind) { return kind < OpKind::kGate; }

// How many arrivals the node waits for.
size_t NumTokens(const FlowNode& node);

// Whether the node fires when the first thing comes, or as soon as its frame opens because it waits for nothing.
bool WaitsForOne(const FlowNode& node);

// Whether a frame has a pending count for the node.
bool IsCounted(const FlowNode& node);

// The kind of the data edges into the node.
EdgeKind EdgeKindInto(const FlowNode& node);

// Gives each node the form that it can have once it is clear who waits for what: a switch that waits only for its data
// and its predicate becomes a gate. For a node that cannot wait for all its control inputs, it adds nodes that do.
void SpecializeNodes(FlowGraph* flow);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_FIRING_H_
