// When a flow node fires, and so what a frame has to keep for it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_FIRING_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_FIRING_H_

#include <cstddef>

#include "cc/analysis/flow_graph.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// Pending counts and input positions are held in 16 bits.
inline constexpr size_t kMaxInputs = 0xffff;

// Whether operators of this kind fire from a queue; a value that reaches others goes straight on.
inline bool Fires(OpKind kind) { return kind < OpKind::kGate; }

// Arrivals that the node waits for.
size_t NumTokens(const FlowNode& node);

// Whether the node fires as soon as anything comes, or at once.
bool WaitsForOne(const FlowNode& node);

// Whether a frame has a pending count for the node.
bool IsCounted(const FlowNode& node);

// The kind of the data edges into the node.
EdgeKind EdgeKindInto(const FlowNode& node);

// Chooses the form of each node that is known when it is clear who waits for what: a switch that waits for its data and
// its predicate alone becomes a gate. Where a node cannot wait for all its control inputs, adds others that do.
void SpecializeNodes(FlowGraph* flow);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_FIRING_H_
