// Says which nodes of a list write or read state (of variables and queues), and which come before or after them.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_EFFECT_STATES_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_EFFECT_STATES_H_

#include <vector>

#include "cc/expand/call_program.h"

namespace tensorflow_recursion {

// What others see of a node, or of some that it comes before or after.
struct EffectState {
  bool writes = false;  // has a side effect
  bool reads = false;

  // Says whether that is news.
  bool Add(EffectState other);
  // Whether the order of the two can be seen.
  bool IsSeenBy(EffectState later) const {
    return (writes && (later.writes || later.reads)) || (reads && later.writes);
  }
};

using EffectStates = std::vector<EffectState>;     // by node
using Neighbours = std::vector<std::vector<int>>;  // by node: other nodes of the list

// What a node does itself; a call does what its callee does.
EffectState StateOf(const CallProgram& program, const NodeList& list, int node);
EffectStates StatesOf(const CallProgram& program, const NodeList& list);

Neighbours ReadersOf(const NodeList& list);

// Adds what a node has to its neighbours, to theirs, and so on.
void Spread(const Neighbours& neighbours, EffectStates* states);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_EFFECT_STATES_H_
