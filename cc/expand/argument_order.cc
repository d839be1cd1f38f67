// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/argument_order.h"

#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cc/analysis/effects.h"
#include "cc/expand/call_nodes.h"
#include "cc/expand/control_inputs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::NodeDef;

// What others see of a node, or of some that it comes after.
struct State {
  bool writes = false;  // has a side effect
  bool reads = false;

  // Says whether that is news.
  bool Add(State other) {
    const State before = *this;
    writes |= other.writes;
    reads |= other.reads;
    return writes != before.writes || reads != before.reads;
  }
};

using States = std::vector<State>;  // by node

class ArgumentOrder {
 public:
  ArgumentOrder(const CallProgram& program, NameTable* names, NodeList* list)
      : program_(program), names_(*names), list_(*list), controls_(names, list), readers_(list->nodes.size()) {}

  void Run() {
    FindAwaited();
    const int count = static_cast<int>(awaited_.size());
    for (int i = 0; i < count; ++i) {
      if (IsInvoke(list_.nodes[i])) Order(i);
    }
  }

 private:
  State StateOf(int node) const {
    const NodeDef& def = list_.nodes[node];
    if (!IsInvoke(def)) return {list_.has_effect[node], ReadsState(def.op())};
    const CalledFunction& callee = program_.functions.at(CalleeOf(def));
    return {callee.has_effects, callee.reads_state};
  }

  // Fills in `awaited_`: the side effects and reads before a control edge on the way to the node.
  void FindAwaited() {
    States before(list_.nodes.size());
    for (size_t i = 0; i < before.size(); ++i) {
      before[i] = StateOf(static_cast<int>(i));
      for (const std::string& input : list_.nodes[i].input()) {
        readers_[list_.ProducerOf(input)].push_back(static_cast<int>(i));
      }
    }
    Spread(&before);
    awaited_.resize(before.size());
    for (size_t i = 0; i < before.size(); ++i) {
      for (const std::string& input : list_.nodes[i].input()) {
        if (IsControl(input)) awaited_[i].Add(before[list_.ProducerOf(input)]);
      }
    }
    Spread(&awaited_);
  }

  // Adds what a node has to all that depend on it.
  void Spread(States* states) const {
    std::vector<int> work(states->size());
    std::iota(work.begin(), work.end(), 0);
    while (!work.empty()) {
      const int node = work.back();
      work.pop_back();
      for (int reader : readers_[node]) {
        if ((*states)[reader].Add((*states)[node])) work.push_back(reader);
      }
    }
  }

  void Order(int call) {
    const State body = StateOf(call);
    const auto& data = list_.nodes[call].input();
    const std::vector<std::string> inputs(data.begin(), data.end());  // new nodes move the old ones
    std::set<int> producers;
    std::set<std::string> waits;
    for (const std::string& input : inputs) {
      const int producer = list_.ProducerOf(input);
      producers.insert(producer);
      const State before = awaited_[producer];
      const bool is_seen = (body.writes && (before.writes || before.reads)) || (body.reads && before.writes);
      if (is_seen) waits.insert(WaitFor(input));
    }
    if (producers.size() < 2) return;  // its arguments come together
    for (const std::string& input : inputs) waits.erase(input);
    if (!waits.empty()) list_.nodes[call].add_input(waits.size() == 1 ? *waits.begin() : Join(call, waits));
  }

  // A call with side effects is done when these are.
  std::string WaitFor(const std::string& input) {
    const int producer = list_.ProducerOf(input);
    const NodeDef& node = list_.nodes[producer];
    return IsInvoke(node) && StateOf(producer).writes ? "^" + node.name() : controls_.By(input);
  }

  // One control input for all of `waits`: every argument of the call gets it.
  std::string Join(int call, const std::set<std::string>& waits) {
    NodeDef join;
    join.set_name(names_.Unique(list_.nodes[call].name() + "/arguments"));
    join.set_op("NoOp");
    join.set_device(list_.nodes[call].device());
    for (const std::string& wait : waits) join.add_input(wait);
    const std::string name = join.name();
    list_.Add(std::move(join), /*with_effect=*/false);
    return "^" + name;
  }

  const CallProgram& program_;
  NameTable& names_;
  NodeList& list_;
  ControlInputs controls_;
  std::vector<std::vector<int>> readers_;  // by node
  States awaited_;
};

}  // namespace

void OrderArguments(NameTable* names, CallProgram* program) {
  ArgumentOrder(*program, names, &program->main).Run();
  for (const std::string& name : program->order) {
    ArgumentOrder(*program, names, &program->functions.at(name).body).Run();
  }
}

}  // namespace tensorflow_recursion
