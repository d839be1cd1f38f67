// Under what a value lives: a set of events.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_CONDITION_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_CONDITION_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "cc/base/ids.h"

namespace tensorflow_recursion {

// Something that happens in a frame or does not: a branch takes one of its sides, a merge gets a value, an argument
// comes. `node` names the flow node that it happens at, `which` tells apart what may happen there.
struct Event {
  NodeId node;
  uint32_t which = 0;

  bool operator==(const Event& other) const { return node == other.node && which == other.which; }
  bool operator<(const Event& other) const { return node != other.node ? node < other.node : which < other.which; }
};

// The events that must all have happened for a value to be live. In `y = f(x) if p else x`, f(x) lives under
// {p is true}, and y, which a merge makes of both sides, under no condition at all: the empty set, "always".
// Two values with the same condition live and die together.
class Condition {
 public:
  using Events = std::vector<Event>;  // sorted, each once

  Condition() = default;
  Condition(std::initializer_list<Event> events);

  const Events& events() const { return events_; }
  bool is_always() const { return events_.empty(); }

  // Whether `other` holds wherever this does.
  bool Implies(const Condition& other) const;
  // That this holds and the other does too.
  Condition And(const Condition& other) const;
  // What is known if at least one of the two holds: the events that they have in common. ("p and q" or "p and r" imply
  // p; that q or r holds cannot be said by a set of events, and is lost.)
  Condition Common(const Condition& other) const;
  // Without the events of `other`.
  Condition Without(const Condition& other) const;
  Condition Without(const Event& event) const;

  bool operator==(const Condition& other) const { return events_ == other.events_; }
  bool operator!=(const Condition& other) const { return events_ != other.events_; }
  bool operator<(const Condition& other) const { return events_ < other.events_; }

 private:
  Events events_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_CONDITION_H_
