// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/condition.h"

namespace tensorflow_recursion {
namespace {

// Keys are in the order of their events.
uint64_t KeyOf(const Event& event) { return uint64_t{static_cast<uint32_t>(event.node)} << 32 | event.which; }

Event EventOf(uint64_t key) { return {NodeId(key >> 32), static_cast<uint32_t>(key)}; }

}  // namespace

Condition::Condition(std::initializer_list<Event> events) {
  for (const Event& event : events) events_ = Union(events_, MakeLeaf(KeyOf(event)));
}

std::vector<Event> Condition::events() const {
  std::vector<Event> events;
  events.reserve(size());
  ForEachKey(events_, [&](uint64_t key) { events.push_back(EventOf(key)); });
  return events;
}

}  // namespace tensorflow_recursion
