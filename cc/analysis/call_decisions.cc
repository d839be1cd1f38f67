// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/call_decisions.h"

#include <algorithm>

#include "cc/analysis/superfluous_waits.h"
#include "cc/base/status.h"

namespace tensorflow_recursion {

void CallDecisions::Find(FlowGraph flow) {
  calls_.clear();
  partial_loops_.clear();
  if (Analyze(&flow).ok()) return;
  calls_.clear();
  partial_loops_.clear();
}

absl::Status CallDecisions::Analyze(FlowGraph* flow) {
  Conditions conditions(*flow);
  TFR_RETURN_IF_ERROR(conditions.Find());
  for (const FlowLoop& loop : flow->loops) {
    if (conditions.IsPartial(loop.region)) partial_loops_.insert(loop.region);
  }
  // First, because DropSuperfluousWaits takes away guards that the conditions of constant arguments come from.
  CollectArguments(*flow, conditions);
  TFR_RETURN_IF_ERROR(DropSuperfluousWaits(flow));
  FindDeciding(*flow, conditions);
  return absl::OkStatus();
}

void CallDecisions::CollectArguments(const FlowGraph& flow, const Conditions& conditions) {
  for (const FlowCallSite& site : flow.call_sites) {
    Call& call = calls_[site.call_id];
    size_t next = 0;
    for (const auto& [index, node] : site.calls) {
      const Input& input = flow.nodes[site.node].inputs[next++];
      call.arguments[index] = conditions.Of(input);
      if (input.is_constant()) call.constants.insert(index);
    }
  }
}

void CallDecisions::FindDeciding(const FlowGraph& flow, const Conditions& conditions) {
  for (const FlowCallSite& site : flow.call_sites) {
    Call& call = calls_[site.call_id];
    std::vector<Condition> deciding;
    size_t next = 0;
    for (const auto& [index, argument] : call.arguments) {
      if (flow.nodes[site.node].inputs[next++].is_constant()) continue;
      call.deciding.insert(index);
      deciding.push_back(argument);
    }
    const std::optional<Condition> any = conditions.AnyOf(deciding);
    if (!any.has_value()) continue;
    for (const auto& [index, argument] : call.arguments) {
      if (any->Implies(argument)) call.always.insert(index);
      if (argument.Implies(*any)) call.only.insert(index);
    }
  }
}

const std::set<int>& CallDecisions::DecidingArguments(int64_t call_id) const { return calls_.at(call_id).deciding; }

bool CallDecisions::IsDecidedBy(int64_t call_id, const std::set<int>& arguments) const {
  const auto position = calls_.find(call_id);
  if (position == calls_.end()) return true;
  const Call& call = position->second;
  auto is_in = [](const std::set<int>& all) { return [&all](int argument) { return all.count(argument) > 0; }; };
  const auto num_constants = std::count_if(arguments.begin(), arguments.end(), is_in(call.constants));
  if (num_constants == 0 &&
      std::includes(arguments.begin(), arguments.end(), call.deciding.begin(), call.deciding.end())) {
    return true;
  }
  // Else a constant among `arguments` may be one that goes along with the others, which decides nothing.
  const bool is_all_constant = num_constants == static_cast<int64_t>(arguments.size());
  const bool is_enough = std::any_of(arguments.begin(), arguments.end(), [&](int argument) {
    return call.always.count(argument) > 0 && (is_all_constant || call.constants.count(argument) == 0);
  });
  return is_enough && std::all_of(arguments.begin(), arguments.end(), is_in(call.only));
}

}  // namespace tensorflow_recursion
