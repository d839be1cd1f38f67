// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/condition.h"

#include <algorithm>
#include <iterator>

namespace tensorflow_recursion {

Condition::Condition(std::initializer_list<Event> events) : events_(events) {
  std::sort(events_.begin(), events_.end());
  events_.erase(std::unique(events_.begin(), events_.end()), events_.end());
}

bool Condition::Implies(const Condition& other) const {
  return std::includes(events_.begin(), events_.end(), other.events_.begin(), other.events_.end());
}

Condition Condition::And(const Condition& other) const {
  Condition both;
  std::set_union(events_.begin(), events_.end(), other.events_.begin(), other.events_.end(),
                 std::back_inserter(both.events_));
  return both;
}

Condition Condition::Common(const Condition& other) const {
  Condition common;
  std::set_intersection(events_.begin(), events_.end(), other.events_.begin(), other.events_.end(),
                        std::back_inserter(common.events_));
  return common;
}

Condition Condition::Without(const Condition& other) const {
  Condition rest;
  std::set_difference(events_.begin(), events_.end(), other.events_.begin(), other.events_.end(),
                      std::back_inserter(rest.events_));
  return rest;
}

Condition Condition::Without(const Event& event) const { return Without(Condition{event}); }

}  // namespace tensorflow_recursion
