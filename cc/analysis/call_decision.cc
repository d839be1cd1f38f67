// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/call_decision.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "cc/analysis/conditions.h"
#include "cc/analysis/flow_graph.h"
#include "cc/analysis/waits.h"
#include "cc/base/status.h"
#include "cc/program/program.h"
#include "cc/values/device_memory.h"

namespace tensorflow_recursion {

namespace {

bool Contains(const Conditions::Atoms& all, const Conditions::Atoms& part) {
  return std::includes(all.begin(), all.end(), part.begin(), part.end());
}

}  // namespace

void CallLives::Find(const tensorflow::Graph& graph, const GraphRegions& regions) {
  calls_.clear();
  partial_loops_.clear();
  if (Analyze(graph, regions).ok()) return;
  calls_.clear();
  partial_loops_.clear();
}

absl::Status CallLives::Analyze(const tensorflow::Graph& graph, const GraphRegions& regions) {
  Program program;
  const DeviceMemory memory;
  DraftBuilder builder(graph, regions, memory, &program);
  TFR_RETURN_IF_ERROR(builder.Build());
  Conditions conditions(builder);
  TFR_RETURN_IF_ERROR(conditions.Find());
  for (const LoopDraft& loop : builder.loops) {
    if (conditions.IsPartial(loop.region)) partial_loops_.insert(loop.region);
  }
  std::map<int64_t, std::vector<Conditions::Atoms>> of_arguments;  // by call_id; simplifying forgets some
  for (const SiteDraft& site : builder.sites) {
    for (const Input& input : builder.drafts[site.draft].inputs) {
      of_arguments[site.call_id].push_back(conditions.Of(input));
      const int index = std::next(site.calls.begin(), static_cast<int>(of_arguments[site.call_id].size()) - 1)->first;
      if (input.is_constant()) calls_[site.call_id].constants.insert(index);
    }
  }
  TFR_RETURN_IF_ERROR(Liveness(&builder).Simplify());
  for (const SiteDraft& site : builder.sites) {
    Call& call = calls_[site.call_id];
    const std::vector<Conditions::Atoms>& arguments = of_arguments[site.call_id];
    std::vector<Conditions::Atoms> deciding;
    size_t next = 0;
    for (const auto& [index, node] : site.calls) {
      if (!builder.drafts[site.draft].inputs[next].is_constant()) {
        call.deciding.insert(index);
        deciding.push_back(arguments[next]);
      }
      ++next;
    }
    const std::optional<Conditions::Atoms> any = conditions.AnyOf(deciding);
    next = 0;
    for (const auto& [index, node] : site.calls) {
      const Conditions::Atoms& argument = arguments[next++];
      if (any.has_value() && Contains(*any, argument)) call.always.insert(index);
      if (any.has_value() && Contains(argument, *any)) call.only.insert(index);
    }
  }
  return absl::OkStatus();
}

const std::set<int>& CallLives::DecidingArguments(int64_t call_id) const { return calls_.at(call_id).deciding; }

bool CallLives::IsDecidedBy(int64_t call_id, const std::set<int>& arguments) const {
  const auto position = calls_.find(call_id);
  if (position == calls_.end()) return true;
  const Call& call = position->second;
  auto is_in = [](const std::set<int>& all) { return [&all](int argument) { return all.count(argument) > 0; }; };
  const auto num_constants = std::count_if(arguments.begin(), arguments.end(), is_in(call.constants));
  if (num_constants == 0 &&
      std::includes(arguments.begin(), arguments.end(), call.deciding.begin(), call.deciding.end())) {
    return true;
  }
  // A constant may go with the others here.
  const bool is_all_constant = num_constants == static_cast<int64_t>(arguments.size());
  const bool is_enough = std::any_of(arguments.begin(), arguments.end(), [&](int argument) {
    return call.always.count(argument) > 0 && (is_all_constant || call.constants.count(argument) == 0);
  });
  return is_enough && std::all_of(arguments.begin(), arguments.end(), is_in(call.only));
}

}  // namespace tensorflow_recursion
