// Says which nodes of a list write or read state (of variables and queues), and which come before or after them.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_EFFECT_STATES_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_EFFECT_STATES_H_

#include <vector>

#include "cc/expand/call_program.h"

namespace tensorflow_recursion {

// Whether a node, or several nodes together, have side effects, or read state.
struct EffectState {
  bool writes = false;
  bool reads = false;

  // Returns whether anything has changed.
  bool Add(EffectState other);
  // Whether it makes a difference that `later` comes after this.
  bool IsSeenBy(EffectState later) const {
    return (writes && (later.writes || later.reads)) || (reads && later.writes);
  }
};

// Both are by node. Neighbours are other nodes of the list, such as all that read the node.
using EffectStates = std::vector<EffectState>;
using Neighbours = std::vector<std::vector<int>>;

// What a node does itself. A call does what its callee does.
EffectState StateOf(const CallProgram& program, const NodeList& list, int node);
EffectStates StatesOf(const CallProgram& program, const NodeList& list);

Neighbours ReadersOf(const NodeList& list);
Neighbours ProducersOf(const NodeList& list);

// Adds the state, or the mark, of each node to its neighbours, to theirs, and so on.
void Spread(const Neighbours& neighbours, EffectStates* states);
void Spread(const Neighbours& neighbours, std::vector<bool>* marks);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_EFFECT_STATES_H_
