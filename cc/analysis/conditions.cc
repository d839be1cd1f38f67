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

Condition ConditionOfVariables(const FlowLoop& loop) { return {{loop.start, 0}}; }

absl::Status Conditions::Find() {
  TFR_RETURN_IF_ERROR(SortNodes(flow_, &order_));
  FindChoices();
  conditions_.resize(flow_.nodes.size());
  do {
    for (NodeId node : order_) Compute(node);
  } while (GiveUpContradicted(flow_, *this, &assumptions_));
  return absl::OkStatus();
}

void Conditions::FindChoices() {
  // The first kSwitchN of a region with this index, which is a constant or a token, and this many sides.
  std::map<std::tuple<RegionId, ConstantId, Source, int>, NodeId> first;
  for (NodeId id : order_) {
    const FlowNode& node = flow_.nodes[id];
    if (node.kind != OpKind::kSwitchN) continue;
    const Input& choice = node.inputs[1];
    const Source source = choice.is_constant() ? Source() : choice.source;
    choices_[id] = first.try_emplace({node.region, choice.constant, source, node.num_ports}, id).first->second;
  }
}

Condition Conditions::Of(const Source& source) const {
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
      const bool may_be_dead = assumptions_.dead_results.count({flow_.CalleeOf(node), source.port}) > 0;
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
  Condition all = input.is_constant() ? Condition() : Of(input.source);
  for (const Source& guard : input.guards) all = all.And(Of(guard));
  return all;
}

std::optional<Condition> Conditions::AnyOf(const std::vector<Condition>& conditions) const {
  return tensorflow_recursion::AnyOf(flow_, {conditions.begin(), conditions.end()});
}

Condition Conditions::OfAll(const FlowNode& node) const {
  Condition all;
  for (const Input& input : node.inputs) all = all.And(Of(input));
  for (const Source& control : node.controls) all = all.And(Of(control));
  return all;
}

Condition Conditions::OfMerge(NodeId id) const {
  const FlowNode& node = flow_.nodes[id];
  std::vector<Condition> inputs;
  for (const Input& input : node.inputs) inputs.push_back(Of(input));
  Condition all = AnyOf(inputs).value_or(Unknown(inputs, {id, 0}));
  for (const Source& control : node.controls) all = all.And(Of(control));
  return all;
}

// A call lives if any of its arguments does. Whether a constant argument counts is not decided yet, so the condition is
// known only if the constants live exactly when the other arguments do.
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
  if (assumptions_.late_entries.count(id) > 0 || IsPartial(node.region)) return {{id, 0}};
  const FlowLoop* const loop = flow_.FindLoop(node.region);
  return loop == nullptr || IsLoopConstant(*node.node) ? Condition() : ConditionOfVariables(*loop);
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

}  // namespace tensorflow_recursion
