// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/argument_order.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cc/expand/call_nodes.h"
#include "cc/expand/control_inputs.h"
#include "cc/expand/effect_states.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::NodeDef;

// Orders the arguments of all calls in one list of nodes.
class ArgumentOrder {
 public:
  ArgumentOrder(const CallProgram& program, NameTable* names, NodeList* list)
      : program_(program), names_(*names), list_(*list), controls_(names, list) {}

  void Run() {
    FindAwaited();
    const int count = static_cast<int>(awaited_.size());
    for (int i = 0; i < count; ++i) {
      if (IsInvoke(list_.nodes[i])) Order(i);
    }
  }

 private:
  // Fills in `awaited_`. A node has awaited the side effects and reads that come before a control edge on the way to
  // it.
  void FindAwaited() {
    const Neighbours readers = ReadersOf(list_);
    EffectStates before = StatesOf(program_, list_);
    Spread(readers, &before);
    awaited_.resize(before.size());
    for (size_t i = 0; i < before.size(); ++i) {
      for (const std::string& input : list_.nodes[i].input()) {
        if (IsControl(input)) awaited_[i].Add(before[list_.ProducerOf(input)]);
      }
    }
    Spread(readers, &awaited_);
  }

  void Order(int call) {
    const EffectState body = StateOf(program_, list_, call);
    const auto& data = list_.nodes[call].input();
    const std::vector<std::string> inputs(data.begin(), data.end());  // new nodes move the old ones
    std::set<int> producers;
    std::set<std::string> waits;
    for (const std::string& input : inputs) {
      const int producer = list_.ProducerOf(input);
      producers.insert(producer);
      if (awaited_[producer].IsSeenBy(body)) waits.insert(WaitFor(input));
    }
    if (producers.size() < 2) return;  // all arguments come together
    for (const std::string& input : inputs) waits.erase(input);
    if (!waits.empty()) list_.nodes[call].add_input(waits.size() == 1 ? *waits.begin() : Join(call, waits));
  }

  // The control input by which to wait for a value. If it comes from a call with side effects, this is a wait for the
  // whole call.
  std::string WaitFor(const std::string& input) {
    const int producer = list_.ProducerOf(input);
    const NodeDef& node = list_.nodes[producer];
    return IsInvoke(node) && StateOf(program_, list_, producer).writes ? "^" + node.name() : controls_.By(input);
  }

  // Makes one control input of all `waits`, because every argument of the call gets it.
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
  EffectStates awaited_;
};

}  // namespace

void OrderArguments(NameTable* names, CallProgram* program) {
  ArgumentOrder(*program, names, &program->main).Run();
  for (const std::string& name : program->order) {
    ArgumentOrder(*program, names, &program->functions.at(name).body).Run();
  }
}

}  // namespace tensorflow_recursion
