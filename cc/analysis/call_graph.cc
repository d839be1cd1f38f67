// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/call_graph.h"

#include <algorithm>
#include <set>
#include <utility>

namespace tensorflow_recursion {
namespace {

// Tarjan's algorithm with a stack of its own: call chains may be longer than the C++ stack is deep.
class ComponentFinder {
 public:
  explicit ComponentFinder(const CallGraph::Calls& calls) : calls_(calls) {}

  std::vector<std::vector<std::string>> Find() {
    for (const auto& [function, callees] : calls_) {
      if (!state_.count(function)) Visit(function);
    }
    return std::move(components_);
  }

 private:
  // What is known of a function that has been found: `order` says when that was.
  struct State {
    int order;
    // When the earliest function was found that is on the stack and that this one reaches.
    int lowest;
    bool on_stack;
  };
  // A function whose callees are being visited, and the next of these.
  struct Step {
    const std::string* function;
    size_t next_callee;
  };

  void Visit(const std::string& root) {
    Enter(root);
    while (!steps_.empty()) {
      Step& step = steps_.back();
      const std::vector<std::string>& callees = calls_.at(*step.function);
      if (step.next_callee < callees.size()) {
        Follow(*step.function, callees[step.next_callee++]);
      } else {
        Leave();
      }
    }
  }

  void Enter(const std::string& function) {
    const int order = static_cast<int>(state_.size());
    state_[function] = {order, order, true};
    stack_.push_back(function);
    steps_.push_back({&calls_.find(function)->first, 0});
  }

  void Follow(const std::string& caller, const std::string& callee) {
    const auto seen = state_.find(callee);
    if (seen == state_.end()) return Enter(callee);
    if (seen->second.on_stack) {
      State& state = state_.at(caller);
      state.lowest = std::min(state.lowest, seen->second.order);
    }
  }

  void Leave() {
    const std::string& function = *steps_.back().function;
    steps_.pop_back();
    const State state = state_.at(function);
    if (!steps_.empty()) {
      State& caller = state_.at(*steps_.back().function);
      caller.lowest = std::min(caller.lowest, state.lowest);
    }
    if (state.lowest == state.order) PopComponent(function);
  }

  void PopComponent(const std::string& first) {
    std::vector<std::string> component;
    do {
      component.push_back(stack_.back());
      stack_.pop_back();
      state_.at(component.back()).on_stack = false;
    } while (component.back() != first);
    std::sort(component.begin(), component.end());
    components_.push_back(std::move(component));
  }

  const CallGraph::Calls& calls_;
  std::map<std::string, State> state_;
  std::vector<std::string> stack_;
  std::vector<Step> steps_;
  std::vector<std::vector<std::string>> components_;
};

}  // namespace

CallGraph::CallGraph(Calls calls) : calls_(std::move(calls)), components_(ComponentFinder(calls_).Find()) {
  for (size_t i = 0; i < components_.size(); ++i) {
    for (const std::string& function : components_[i]) component_of_[function] = static_cast<int>(i);
  }
}

std::vector<std::string> CallGraph::ReachableFrom(int component) const {
  std::set<std::string> reached;
  std::vector<std::string> work = components_[component];
  while (!work.empty()) {
    const std::string function = std::move(work.back());
    work.pop_back();
    if (!reached.insert(function).second) continue;
    const std::vector<std::string>& callees = calls_.at(function);
    work.insert(work.end(), callees.begin(), callees.end());
  }
  return {reached.begin(), reached.end()};
}

}  // namespace tensorflow_recursion
