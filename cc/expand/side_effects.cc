// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/side_effects.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/expand/call_nodes.h"
#include "cc/expand/control_inputs.h"
#include "cc/expand/effect_states.h"
#include "cc/expand/loop_pivots.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::NodeDef;

// By node: what it no longer waits for, and whether it is a NoOp that waits for nothing any more.
struct LostWaits {
  std::vector<std::vector<int>> producers;
  std::vector<bool> is_idle;
};

bool IsPartOfGradient(const CallProgram& program, const NodeDef& node) {
  return IsInvoke(node) ? program.functions.at(CalleeOf(node)).is_gradient : IsPureGradientOp(node.op());
}

// Whether TensorFlow has put the node here when it expanded a branch, a loop or an ordinary call. The waits of such
// nodes are mostly TensorFlow's own, while other waits are what the user has written.
bool IsInlined(const NodeDef& node) { return node.experimental_debug_info().original_func_names_size() > 0; }

// Drops the waits for gradients in one list of nodes.
class GradientWaitDropper {
 public:
  // `roots` are the nodes for which `list` is run, such as fetches. There are none if all waits for gradients in the
  // list are TensorFlow's own. `states` says what each node does, or what comes after it does.
  GradientWaitDropper(const CallProgram& program, const EffectStates& states, const std::vector<int>& roots,
                      NodeList* list)
      : program_(program), states_(states), list_(*list) {
    lost_.producers.resize(list->nodes.size());
    lost_.is_idle.resize(list->nodes.size(), false);
    is_needed_.resize(list->nodes.size(), roots.empty());
    FindNeeded(roots);
  }

  LostWaits Run() {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < list_.nodes.size(); ++i) changed = DropWaitsOf(static_cast<int>(i)) || changed;
    }
    return std::move(lost_);
  }

 private:
  // Drops what the node need not wait for. Returns whether it is a NoOp that now waits for nothing, so that nobody need
  // wait for it either.
  bool DropWaitsOf(int waiting) {
    NodeDef& node = list_.nodes[waiting];
    const auto is_superfluous = [&](const std::string& input) { return IsSuperfluous(input, waiting); };
    auto* inputs = node.mutable_input();
    const auto end = std::stable_partition(inputs->begin(), inputs->end(), std::not_fn(is_superfluous));
    if (end == inputs->end()) return false;
    for (auto input = end; input != inputs->end(); ++input) {
      lost_.producers[waiting].push_back(list_.ProducerOf(*input));
    }
    inputs->erase(end, inputs->end());
    lost_.is_idle[waiting] = inputs->empty() && node.op() == "NoOp";
    return lost_.is_idle[waiting];
  }

  bool IsSuperfluous(const std::string& input, int waiting) const {
    if (!IsControl(input)) return false;
    const int producer = list_.ProducerOf(input);
    return lost_.is_idle[producer] || (IsWaitForGradient(input, waiting) && !IsAskedFor(producer));
  }

  // A wait that a side effect depends on is left alone. Data edges count, too, because `tf.control_dependencies` adds
  // no control edge to an operator with an input that waits already.
  bool IsWaitForGradient(const std::string& input, int waiting) const {
    return IsControl(input) && IsPartOfGradient(program_, list_.nodes[list_.ProducerOf(input)]) &&
           !states_[waiting].writes;
  }

  // Whether a gradient is computed only because somebody waits for it, as `tf.group(dx)` does.
  bool IsAskedFor(int producer) const { return !is_needed_[producer] && !IsInlined(list_.nodes[producer]); }

  // Finds the nodes that are needed even if nobody waits for gradients.
  void FindNeeded(std::vector<int> work) {
    while (!work.empty()) {
      const int node = work.back();
      work.pop_back();
      if (is_needed_[node]) continue;
      is_needed_[node] = true;
      for (const std::string& input : list_.nodes[node].input()) {
        if (!IsWaitForGradient(input, node)) work.push_back(list_.ProducerOf(input));
      }
    }
  }

  const CallProgram& program_;
  const EffectStates& states_;
  NodeList& list_;
  // By node.
  std::vector<bool> is_needed_;
  LostWaits lost_;
};

// Keeps nodes in their branch or iteration that only a wait for a gradient has kept there. For example, a constant
// without any input would run whenever its function does. Such a node waits for what the gradient is called with.
class PlaceKeeper {
 public:
  PlaceKeeper(const CallProgram& program, const LostWaits& lost, NameTable* names, NodeList* list)
      : program_(program), lost_(lost), list_(*list), controls_(names, list) {}

  void Run() {
    const int count = static_cast<int>(lost_.producers.size());
    for (int i = 0; i < count; ++i) {
      if (!lost_.producers[i].empty() && !lost_.is_idle[i] && !HasPlace(list_.nodes[i])) Place(i);
    }
  }

 private:
  // Whether some input keeps the node in its branch and iteration. One from outside of the loop does not, because it
  // lives in every iteration.
  bool HasPlace(const NodeDef& node) const {
    return std::any_of(node.input().begin(), node.input().end(),
                       [&](const std::string& input) { return IsControl(input) || !ComesFromOutside(list_, input); });
  }

  void Place(int node) {
    std::set<std::string> waits;
    for (const std::string& value : FindPlaces(node)) waits.insert(controls_.By(value));
    for (const std::string& wait : waits) list_.nodes[node].add_input(wait);
  }

  // The values with which those gradients are called that the node has waited for. Results of other calls are among
  // them only if there is nothing else, because to wait for a call is to wait for all that it does.
  std::vector<std::string> FindPlaces(int node) const {
    std::vector<std::string> values, results;
    std::vector<int> work = lost_.producers[node];
    std::set<int> seen(work.begin(), work.end());
    const auto walk_to = [&](int producer) {
      if (seen.insert(producer).second) work.push_back(producer);
    };
    while (!work.empty()) {
      const int producer = work.back();
      work.pop_back();
      for (int before : lost_.producers[producer]) walk_to(before);
      for (const std::string& input : list_.nodes[producer].input()) {
        const NodeDef& source = list_.nodes[list_.ProducerOf(input)];
        if (IsPartOfGradient(program_, source)) {
          walk_to(list_.ProducerOf(input));
        } else if (!ComesFromOutside(list_, input)) {
          (IsInvoke(source) ? results : values).push_back(input);
        }
      }
    }
    return values.empty() ? results : values;
  }

  const CallProgram& program_;
  const LostWaits& lost_;
  NodeList& list_;
  ControlInputs controls_;
};

// Keeps nodes behind the side effects that the gradients come after for which they no longer wait. For example, of
//     assignment -> gradient -> gradient of it -> read
// where the arrows are control edges and nobody else needs the second gradient, the read has lost its only wait.
class OrderKeeper {
 public:
  // `states` says what each node does, or comes after.
  OrderKeeper(const CallProgram& program, const EffectStates& states, const LostWaits& lost, NodeList* list)
      : program_(program), states_(states), lost_(lost), list_(*list) {}

  void Run() {
    const int count = static_cast<int>(lost_.producers.size());
    for (int i = 0; i < count; ++i) {
      if (!lost_.is_idle[i] && !lost_.producers[i].empty()) Keep(i);
    }
  }

 private:
  // Whether what the node waits for has to be waited for in its place.
  bool IsPassed(int node) const { return IsPartOfGradient(program_, list_.nodes[node]) || lost_.is_idle[node]; }

  // What the node waits for, or has waited for, of all that has side effects or comes after some.
  std::vector<int> ProducersAfterEffects(int node) const {
    std::vector<int> found = lost_.producers[node];
    for (const std::string& input : list_.nodes[node].input()) found.push_back(list_.ProducerOf(input));
    found.erase(std::remove_if(found.begin(), found.end(), [&](int producer) { return !states_[producer].writes; }),
                found.end());
    return found;
  }

  void Keep(int node) {
    std::set<int> befores;
    for (int producer : lost_.producers[node]) {
      if (!states_[producer].writes) continue;
      FindEffectsBefore(producer);
      const std::set<int>& found = effects_before_.at(producer);
      befores.insert(found.begin(), found.end());
    }
    NodeDef& def = list_.nodes[node];
    std::set<std::string> known(def.input().begin(), def.input().end());
    for (int before : befores) {
      const std::string wait = absl::StrCat("^", list_.nodes[before].name());
      if (before != node && known.insert(wait).second) def.add_input(wait);
    }
  }

  // Finds for a gradient, and for those that it waits for, directly or not, which other nodes behind side effects they
  // wait for.
  void FindEffectsBefore(int gradient) {
    std::vector<int> work = {gradient};
    std::set<int> opened;
    while (!work.empty()) {
      const int node = work.back();
      const std::vector<int> producers = ProducersAfterEffects(node);
      if (effects_before_.count(node) == 0 && opened.insert(node).second) {
        std::copy_if(producers.begin(), producers.end(), std::back_inserter(work),
                     [&](int producer) { return IsPassed(producer) && opened.count(producer) == 0; });
        continue;
      }
      work.pop_back();
      if (effects_before_.count(node) > 0) continue;
      std::set<int> befores;
      for (int producer : producers) {
        const auto further = effects_before_.find(producer);
        if (!IsPassed(producer)) {
          befores.insert(producer);
        } else if (further != effects_before_.end()) {
          befores.insert(further->second.begin(), further->second.end());
        }
      }
      effects_before_[node] = std::move(befores);
    }
  }

  const CallProgram& program_;
  const EffectStates& states_;
  const LostWaits& lost_;
  NodeList& list_;
  std::map<int, std::set<int>> effects_before_;
};

void DropWaits(const CallProgram& program, const std::vector<int>& roots, NameTable* names, NodeList* list) {
  const EffectStates states = StatesOf(program, *list);
  EffectStates before = states, after = states;
  const bool has_effects = std::any_of(states.begin(), states.end(), [](const EffectState& one) { return one.writes; });
  if (has_effects) {
    Spread(ReadersOf(*list), &before);
    Spread(ProducersOf(*list), &after);
  }
  const LostWaits lost = GradientWaitDropper(program, after, roots, list).Run();
  PlaceKeeper(program, lost, names, list).Run();
  if (has_effects) OrderKeeper(program, before, lost, list).Run();
}

std::vector<int> FetchedNodes(const CallProgram& program) {
  std::vector<int> nodes;
  nodes.reserve(program.fetches.size());
  for (const auto& [name, fetch] : program.fetches) nodes.push_back(program.main.index.at(name));
  return nodes;
}

// The nodes for which a body is run. A gradient has none here, because TensorFlow has made all its waits.
std::vector<int> RootsOf(const CalledFunction& function) {
  if (function.is_gradient) return {};
  std::vector<int> nodes = function.outputs;
  for (const std::string& effect : function.effects) nodes.push_back(function.body.index.at(effect));
  return nodes;
}

using CallersByName = std::map<std::string, std::vector<std::string>>;

CallersByName FindCallers(const CallProgram& program) {
  CallersByName callers;
  for (const auto& [name, function] : program.functions) {
    for (const std::string& callee : function.callees) callers[callee].push_back(name);
  }
  return callers;
}

// Sets the property of all functions that call one with it, directly or not, except for gradients.
void Spread(bool CalledFunction::* property, const CallersByName& callers, CallProgram* program) {
  std::vector<std::string> work;
  for (const auto& [name, function] : program->functions) {
    if (function.*property) work.push_back(name);
  }
  while (!work.empty()) {
    const auto found = callers.find(work.back());
    work.pop_back();
    if (found == callers.end()) continue;
    for (const std::string& name : found->second) {
      CalledFunction& caller = program->functions.at(name);
      if (caller.*property || caller.is_gradient) continue;
      caller.*property = true;
      work.push_back(name);
    }
  }
}

}  // namespace

void SpreadEffects(CallProgram* program) {
  const CallersByName callers = FindCallers(*program);
  Spread(&CalledFunction::has_effects, callers, program);
  Spread(&CalledFunction::reads_state, callers, program);
}

void DropGradientWaits(NameTable* names, CallProgram* program) {
  DropWaits(*program, FetchedNodes(*program), names, &program->main);
  for (const std::string& name : program->order) {
    CalledFunction& function = program->functions.at(name);
    DropWaits(*program, RootsOf(function), names, &function.body);
  }
}

}  // namespace tensorflow_recursion
