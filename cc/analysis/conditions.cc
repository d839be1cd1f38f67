// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/conditions.h"

#include <algorithm>
#include <tuple>

#include "cc/analysis/any_condition.h"
#include "cc/analysis/node_facts.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {
namespace {

// The event that all variables of a loop live.
Condition VariablesOf(const FlowLoop& loop) { return {{loop.start, 0}}; }

// The events that all of `conditions` have in common, and the event `unknown`, which stands for the rest: no set of
// events says that one of several conditions holds.
Condition Unknown(const std::vector<Condition>& conditions, const Event& unknown) {
  Condition common = conditions.empty() ? Condition() : conditions[0];
  for (const Condition& condition : conditions) common = common.Common(condition);
  return common.And({unknown});
}

// Whether a receive waits for another device of the step, which may send that the value is dead.
bool ComesFromDevice(const FlowNode& node) {
  bool is_fed = false;
  (void)tensorflow::GetNodeAttr(node.node->attrs(), "client_terminated", &is_fed);
  return node.may_be_dead && !is_fed;
}

}  // namespace

absl::Status Conditions::Find() {
  TFR_RETURN_IF_ERROR(SortNodes(flow_, &order_));
  FindChoices();
  FindExits();
  conditions_.resize(flow_.nodes.size());
  for (bool changed = true; changed;) {
    for (NodeId node : order_) Compute(node);
    changed = FindLateArguments();
    changed = FindDeadResults() || changed;
    changed = FindPartialLoops() || changed;
  }
  return absl::OkStatus();
}

// Switches on one index take the same side.
void Conditions::FindChoices() {
  std::map<std::tuple<RegionId, ConstantId, Source, int>, NodeId> first;  // by region, index, number of sides
  for (NodeId id : order_) {
    const FlowNode& node = flow_.nodes[id];
    if (node.kind != OpKind::kSwitchN) continue;
    const Input& choice = node.inputs[1];
    const Source source = choice.is_constant() ? Source() : choice.source;
    choices_[id] = first.try_emplace({node.region, choice.constant, source, node.num_ports}, id).first->second;
  }
}

void Conditions::FindExits() {
  for (NodeId id : order_) {
    const FlowNode& node = flow_.nodes[id];
    if (node.kind == OpKind::kExit) exits_[node.region].push_back(id);
  }
}

Condition Conditions::OfSource(const Source& source) const {
  const FlowNode& node = flow_.nodes[source.node];
  const Condition& whole = conditions_[source.node];
  if (source.port == Source::kWholeNode) return whole;
  const auto port = static_cast<uint32_t>(source.port);
  switch (node.kind) {
    case OpKind::kBranch:
      return whole.And({{source.node, port}});
    case OpKind::kSwitch:
      return whole.And({{node.branch, port}});
    case OpKind::kSwitchN:
      return whole.And({{choices_.at(source.node), port}});
    case OpKind::kCallSite: {
      const bool may_be_dead = dead_results_.count({flow_.CalleeOf(node), source.port}) > 0;
      return may_be_dead ? whole.And({{source.node, port + 1}}) : whole;
    }
    case OpKind::kLoopStart: {
      const bool is_partial = IsPartial(flow_.loops[node.index].region);
      return is_partial ? whole.And({{source.node, port + 1}}) : whole;
    }
    default:
      return whole;
  }
}

Condition Conditions::Of(const Input& input) const {
  Condition all = input.is_constant() ? Condition() : OfSource(input.source);
  for (const Source& guard : input.guards) all = all.And(OfSource(guard));
  return all;
}

std::optional<Condition> Conditions::AnyOf(const std::vector<Condition>& conditions) const {
  return tensorflow_recursion::AnyOf(flow_, {conditions.begin(), conditions.end()});
}

Condition Conditions::OfAll(const FlowNode& node) const {
  Condition all;
  for (const Input& input : node.inputs) all = all.And(Of(input));
  for (const Source& control : node.controls) all = all.And(OfSource(control));
  return all;
}

Condition Conditions::OfMerge(NodeId id) const {
  const FlowNode& node = flow_.nodes[id];
  std::vector<Condition> inputs;
  for (const Input& input : node.inputs) inputs.push_back(Of(input));
  Condition all = AnyOf(inputs).value_or(Unknown(inputs, {id, 0}));
  for (const Source& control : node.controls) all = all.And(OfSource(control));
  return all;
}

// A call lives if any of its arguments does. Whether a constant counts among these is not decided yet: so the call's
// condition is known only if the constants live exactly when the other arguments do.
Condition Conditions::OfSite(NodeId id) const {
  const FlowNode& node = flow_.nodes[id];
  if (flow_.SiteOf(node).join != nullptr) return Of(node.inputs.back());
  std::vector<Condition> all;
  std::vector<Condition> values;
  std::vector<Condition> constants;
  for (const Input& input : node.inputs) {
    all.push_back(Of(input));
    (input.is_constant() ? constants : values).push_back(all.back());
  }
  const std::optional<Condition> any = AnyOf(values.empty() ? constants : values);
  const bool is_known = any.has_value() && std::all_of(constants.begin(), constants.end(),
                                                       [&](const Condition& constant) { return constant == *any; });
  return is_known ? *any : Unknown(all, {id, 0});
}

Condition Conditions::OfStart(NodeId id) const {
  const FlowNode& node = flow_.nodes[id];
  const FlowLoop& loop = flow_.loops[node.index];
  if (!IsPartial(loop.region)) return OfAll(node);
  std::vector<Condition> variables;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!IsLoopConstant(*loop.enters[i])) variables.push_back(Of(node.inputs[i]));
  }
  return AnyOf(variables).value_or(Unknown(variables, {id, static_cast<uint32_t>(node.num_ports) + 1}));
}

// A loop that starts on one device starts on all others too, on some of them perhaps with dead variables. What the loop
// takes from outside may be live there nevertheless, so its condition is not that of the variables.
Condition Conditions::OfEntry(NodeId id) const {
  const FlowNode& node = flow_.nodes[id];
  if (late_entries_.count(id) > 0 || IsPartial(node.region)) return {{id, 0}};
  const FlowLoop* const loop = flow_.FindLoop(node.region);
  return loop == nullptr || IsLoopConstant(*node.node) ? Condition() : VariablesOf(*loop);
}

void Conditions::Compute(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  Condition& condition = conditions_[id];
  switch (node.kind) {
    case OpKind::kMerge:
      condition = OfMerge(id);
      return;
    case OpKind::kCallSite:
      condition = OfSite(id);
      return;
    case OpKind::kUnion:
      condition = Condition();
      return;
    case OpKind::kLoopStart:
      condition = OfStart(id);
      return;
    case OpKind::kEntry:
      condition = OfEntry(id);
      return;
    default:
      condition = OfAll(node);
      if (ComesFromDevice(node)) condition = condition.And({{id, 0}});
  }
}

bool Conditions::FindLateArguments() {
  const size_t before = late_entries_.size();
  for (const FlowCallSite& site : flow_.call_sites) {
    const auto function = flow_.functions.find(flow_.regions.FindFunction(site.callee));
    if (function == flow_.functions.end()) continue;
    const std::vector<NodeId>& entries = function->second.entries;
    const std::vector<Input>& inputs = flow_.nodes[site.node].inputs;
    for (size_t i = 0; i < std::min(inputs.size(), entries.size()); ++i) {
      if (entries[i] != kNone && Of(inputs[i]) != conditions_[site.node]) late_entries_.insert(entries[i]);
    }
  }
  return late_entries_.size() > before;
}

bool Conditions::FindDeadResults() {
  const size_t before = dead_results_.size();
  for (NodeId id : flow_.nodes.ids()) {
    const FlowNode& node = flow_.nodes[id];
    if (node.kind != OpKind::kResult || conditions_[id].is_always()) continue;
    dead_results_.emplace(node.region, static_cast<int>(node.index));
  }
  return dead_results_.size() > before;
}

bool Conditions::FindPartialLoops() {
  const size_t before = partial_loops_.size();
  for (const FlowLoop& loop : flow_.loops) {
    if (!IsPartial(loop.region) && (StartsPartially(loop) || EndsPartially(loop))) partial_loops_.insert(loop.region);
  }
  return partial_loops_.size() > before;
}

// In every other loop all variables come together, and what comes from outside lives whenever they do.
bool Conditions::StartsPartially(const FlowLoop& loop) const {
  const std::vector<Input>& inputs = flow_.nodes[loop.start].inputs;
  std::optional<Condition> together;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (IsLoopConstant(*loop.enters[i])) continue;
    const Condition variable = Of(inputs[i]);
    if (together.value_or(variable) != variable) return true;
    together = variable;
  }
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const Input& input) { return !together.value_or(Condition()).Implies(Of(input)); });
}

// In every other loop all variables go on to the next iteration on one side of a branch, and all leave the loop on its
// other side.
bool Conditions::EndsPartially(const FlowLoop& loop) const {
  const Condition variables = VariablesOf(loop);
  std::set<Condition> ends;
  std::set<Condition> nexts;
  const auto exits = exits_.find(loop.region);
  if (exits != exits_.end()) {
    for (NodeId exit : exits->second) ends.insert(conditions_[exit].Without(variables));
  }
  for (size_t i = 0; i < loop.nexts.size(); ++i) {
    Condition next = Of(flow_.nodes[loop.next].inputs[i]);
    for (const Source& control : loop.next_controls[i]) next = next.And(OfSource(control));
    nexts.insert(next.Without(variables));
  }
  const std::set<Condition> always = {Condition()};
  if (nexts.empty()) return !ends.empty() && ends != always;
  if (ends.size() > 1 || nexts.size() > 1 || nexts.begin()->events().size() != 1) return true;
  if (ends.empty()) return false;
  std::set<Condition> both = {*ends.begin(), *nexts.begin()};
  return !JoinSides(flow_, &both) || both != always;
}

}  // namespace tensorflow_recursion
