// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/side_effects.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cc/expand/call_graph.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::NodeDef;

// Finds the nodes that have a side effect, or that one depends on. Data edges count too, because
// `tf.control_dependencies` leaves out the control edge of an operator with an input that waits already.
std::vector<bool> FindOrdered(const CallProgram& program, const NodeList& list) {
  std::vector<bool> is_ordered(list.nodes.size(), false);
  std::vector<int> work;
  auto order = [&](int position) {
    if (!is_ordered[position]) work.push_back(position);
    is_ordered[position] = true;
  };
  for (size_t i = 0; i < list.nodes.size(); ++i) {
    const NodeDef& node = list.nodes[i];
    const bool has_effect =
        IsInvoke(node) ? program.functions.at(CalleeOf(node)).has_effects : static_cast<bool>(list.has_effect[i]);
    if (has_effect) order(static_cast<int>(i));
  }
  while (!work.empty()) {
    const NodeDef& node = list.nodes[work.back()];
    work.pop_back();
    for (const std::string& input : node.input()) order(list.ProducerOf(input));
  }
  return is_ordered;
}

class WaitDropper {
 public:
  WaitDropper(const CallProgram& program, NodeList* list)
      : program_(program),
        list_(*list),
        is_ordered_(FindOrdered(program, *list)),
        waits_for_nothing_(list->nodes.size(), false) {}

  void Run() {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < list_.nodes.size(); ++i) changed = DropWaitsOf(static_cast<int>(i)) || changed;
    }
  }

 private:
  // Says whether a NoOp has lost all that it waited for: who waits for it need not either.
  bool DropWaitsOf(int waiting) {
    NodeDef& node = list_.nodes[waiting];
    const auto is_superfluous = [&](const std::string& input) { return IsSuperfluous(input, waiting); };
    auto* inputs = node.mutable_input();
    const auto end = std::remove_if(inputs->begin(), inputs->end(), is_superfluous);
    if (end == inputs->end()) return false;
    inputs->erase(end, inputs->end());
    waits_for_nothing_[waiting] = inputs->empty() && node.op() == "NoOp";
    return waits_for_nothing_[waiting];
  }

  bool IsSuperfluous(const std::string& input, int waiting) const {
    if (!tensorflow::IsTensorIdControl(tensorflow::ParseTensorName(input))) return false;
    const int producer = list_.ProducerOf(input);
    return waits_for_nothing_[producer] || (IsPartOfGradient(list_.nodes[producer]) && !is_ordered_[waiting]);
  }

  bool IsPartOfGradient(const NodeDef& node) const {
    return IsInvoke(node) ? program_.functions.at(CalleeOf(node)).is_gradient : IsPureGradientOp(node.op());
  }

  const CallProgram& program_;
  NodeList& list_;
  const std::vector<bool> is_ordered_;   // by node
  std::vector<bool> waits_for_nothing_;  // NoOps that waited for gradients alone
};

}  // namespace

void SpreadEffects(CallProgram* program) {
  std::map<std::string, std::vector<std::string>> callers;
  std::vector<std::string> work;
  for (const auto& [name, function] : program->functions) {
    for (const std::string& callee : function.callees) callers[callee].push_back(name);
    if (function.has_effects) work.push_back(name);
  }
  while (!work.empty()) {
    const std::string name = std::move(work.back());
    work.pop_back();
    for (const std::string& caller : callers[name]) {
      bool& has_effects = program->functions.at(caller).has_effects;
      if (has_effects || program->functions.at(caller).is_gradient) continue;
      has_effects = true;
      work.push_back(caller);
    }
  }
}

void DropGradientWaits(CallProgram* program) {
  WaitDropper(*program, &program->main).Run();
  for (const std::string& name : program->order) WaitDropper(*program, &program->functions.at(name).body).Run();
}

}  // namespace tensorflow_recursion
