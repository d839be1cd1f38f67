// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/effect_states.h"

#include <numeric>
#include <string>

#include "cc/analysis/effects.h"
#include "cc/expand/call_nodes.h"

namespace tensorflow_recursion {
namespace {

// Lets each node reach its neighbours, and again each that has changed by this. `reach(node, neighbour)` returns
// whether the neighbour has changed.
template <typename Reach>
void SpreadBy(const Neighbours& neighbours, Reach reach) {
  std::vector<int> work(neighbours.size());
  std::iota(work.begin(), work.end(), 0);
  while (!work.empty()) {
    const int node = work.back();
    work.pop_back();
    for (int neighbour : neighbours[node]) {
      if (reach(node, neighbour)) work.push_back(neighbour);
    }
  }
}

}  // namespace

bool EffectState::Add(EffectState other) {
  const EffectState before = *this;
  writes |= other.writes;
  reads |= other.reads;
  return writes != before.writes || reads != before.reads;
}

EffectState StateOf(const CallProgram& program, const NodeList& list, int node) {
  const tensorflow::NodeDef& def = list.nodes[node];
  if (!IsInvoke(def)) return {list.has_effect[node], ReadsState(def.op())};
  const CalledFunction& callee = program.functions.at(CalleeOf(def));
  return {callee.has_effects, callee.reads_state};
}

EffectStates StatesOf(const CallProgram& program, const NodeList& list) {
  EffectStates states(list.nodes.size());
  for (size_t i = 0; i < states.size(); ++i) states[i] = StateOf(program, list, static_cast<int>(i));
  return states;
}

Neighbours ReadersOf(const NodeList& list) {
  Neighbours readers(list.nodes.size());
  for (size_t i = 0; i < readers.size(); ++i) {
    for (const std::string& input : list.nodes[i].input()) {
      readers[list.ProducerOf(input)].push_back(static_cast<int>(i));
    }
  }
  return readers;
}

Neighbours ProducersOf(const NodeList& list) {
  Neighbours producers(list.nodes.size());
  for (size_t i = 0; i < producers.size(); ++i) {
    for (const std::string& input : list.nodes[i].input()) producers[i].push_back(list.ProducerOf(input));
  }
  return producers;
}

void Spread(const Neighbours& neighbours, EffectStates* states) {
  SpreadBy(neighbours, [&](int node, int neighbour) { return (*states)[neighbour].Add((*states)[node]); });
}

void Spread(const Neighbours& neighbours, std::vector<bool>* marks) {
  SpreadBy(neighbours, [&](int node, int neighbour) {
    const bool is_new = (*marks)[node] && !(*marks)[neighbour];
    if (is_new) (*marks)[neighbour] = true;
    return is_new;
  });
}

}  // namespace tensorflow_recursion
