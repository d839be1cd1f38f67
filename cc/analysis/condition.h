// Conditions: the sets of events under which values live.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_CONDITION_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_CONDITION_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "cc/analysis/event_tree.h"
#include "cc/base/ids.h"

namespace tensorflow_recursion {

// Something that may or may not happen in a frame: a branch takes one of its sides, a merge gets a value, an argument
// comes. It happens at the flow node `node`; `which` tells apart the events of one node, such as the sides of a branch.
struct Event {
  NodeId node;
  uint32_t which = 0;

  bool operator==(const Event& other) const { return node == other.node && which == other.which; }
  bool operator<(const Event& other) const { return node != other.node ? node < other.node : which < other.which; }
};

// The events that must all have happened for a value to be live. In `y = f(x) if p else x`, f(x) lives under
// {p is true}, and y, which a merge makes of both sides, under no condition at all: the empty set, "always".
// Two values with the same condition live and die together.
// Conditions share in memory what they have in common. So a chain of n calls, each of which lives under all events that
// those before it live under, does not take n * n time and memory.
class Condition {
 public:
  Condition() = default;
  Condition(std::initializer_list<Event> events);

  // The events, sorted, each once.
  std::vector<Event> events() const;
  size_t size() const { return events_ == nullptr ? 0 : events_->size; }
  bool is_always() const { return events_ == nullptr; }

  // Whether `other` holds wherever this condition does.
  bool Implies(const Condition& other) const { return Includes(events_, other.events_); }
  // The condition that both hold.
  Condition And(const Condition& other) const { return Condition(Union(events_, other.events_)); }
  // What is known if at least one of the two holds: the events that they have in common. ("p and q" or "p and r" imply
  // p; that q or r holds cannot be said by a set of events, and is lost.)
  Condition Common(const Condition& other) const { return Condition(Intersection(events_, other.events_)); }
  // This condition without the events of `other`.
  Condition Without(const Condition& other) const { return Condition(Difference(events_, other.events_)); }
  Condition Without(const Event& event) const { return Without(Condition{event}); }

  bool operator==(const Condition& other) const { return size() == other.size() && Implies(other); }
  bool operator!=(const Condition& other) const { return !(*this == other); }
  // Compares the events one after the other, which gives sets and maps an order.
  bool operator<(const Condition& other) const { return events_ != other.events_ && events() < other.events(); }

 private:
  explicit Condition(EventTree::Ptr events) : events_(std::move(events)) {}

  EventTree::Ptr events_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_CONDITION_H_
