// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/spread_deciders.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cc/analysis/effects.h"
#include "cc/base/names.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Edge;
using tensorflow::GetNodeAttr;
using tensorflow::Graph;
using tensorflow::Node;

bool Is(const Node* node, const char* op) { return node->type_string() == op; }

// Whether there is a choice of the device that decides.
bool HasSplitArguments(const Boundaries& boundaries) {
  return std::any_of(boundaries.bodies.begin(), boundaries.bodies.end(), [](const auto& body) {
    const auto& entries = body.second.entries;
    return std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
      return entry.second->assigned_device_name() != entries.begin()->second->assigned_device_name();
    });
  });
}

// Functions whose results may come only after a side effect.
std::set<std::string> FindLateFunctions(const Graph& graph, const GraphRegions& regions, const Boundaries& boundaries) {
  std::set<std::string> late;
  for (const Node* node : graph.op_nodes()) {
    if (!regions.IsStructural(node) && HasEffect(*node)) late.insert(regions.FunctionOf(node));
  }
  for (bool changed = !late.empty(); changed;) {
    changed = false;
    for (const auto& [id, call] : boundaries.calls) {
      if (late.count(call.callee) > 0) changed = late.insert(call.caller).second || changed;
    }
  }
  return late;
}

// Whether what `call` hands over may come only after a side effect.
bool IsLate(const Node& call, const GraphRegions& regions, const std::set<std::string>& late_functions,
            Boundaries* boundaries) {
  std::set<const Node*> seen = {&call};
  std::vector<const Node*> work = {&call};
  while (!work.empty()) {
    const Node* node = work.back();
    work.pop_back();
    if (HasEffect(*node)) return true;
    std::string function;
    if (Is(node, kReturnOp) || Is(node, kEntryOp)) (void)GetNodeAttr(node->attrs(), kFunctionAttr, &function);
    int64_t index = 0;
    if (Is(node, kReturnOp) && late_functions.count(function) > 0) return true;
    if (Is(node, kEntryOp) && GetNodeAttr(node->attrs(), kIndexAttr, &index).ok() &&
        boundaries->bodies[function].late_arguments.count(index) > 0) {
      return true;
    }
    for (const Edge* edge : node->in_edges()) {
      if (regions.IsReal(edge) && seen.insert(edge->src()).second) work.push_back(edge->src());
    }
  }
  return false;
}

}  // namespace

void FindLateArguments(const Graph& graph, const GraphRegions& regions, Boundaries* boundaries) {
  if (!HasSplitArguments(*boundaries)) return;
  const std::set<std::string> late_functions = FindLateFunctions(graph, regions, *boundaries);
  for (bool changed = !late_functions.empty(); changed;) {
    changed = false;
    for (const auto& [id, call] : boundaries->calls) {
      std::set<int64_t>& late_arguments = boundaries->bodies[call.callee].late_arguments;
      for (const auto& [index, node] : call.calls) {
        if (late_arguments.count(index) > 0 || !IsLate(*node, regions, late_functions, boundaries)) continue;
        late_arguments.insert(index);
        changed = true;
      }
    }
  }
}

void ChooseDeciders(Boundaries* boundaries) {
  for (auto& [name, body] : boundaries->bodies) {
    const int in_time = static_cast<int>(body.entries.size()) + 1;  // the weight of an argument that is never late
    std::map<std::string, int> weights;
    if (body.frame_start != nullptr) body.decider = body.frame_start->assigned_device_name();
    if (!body.entries.empty()) body.decider = body.entries.begin()->second->assigned_device_name();
    for (const auto& [index, entry] : body.entries) {
      weights[entry->assigned_device_name()] += body.late_arguments.count(index) > 0 ? 1 : in_time;
    }
    for (const auto& [device, weight] : weights) {
      if (weight > weights[body.decider]) body.decider = device;
    }
  }
  for (const auto& [id, call] : boundaries->calls) {
    std::string& decider = boundaries->bodies[call.callee].decider;
    if (decider.empty() && !call.calls.empty()) decider = call.calls.begin()->second->assigned_device_name();
  }
}

void AlignCalls(Boundaries* boundaries) {
  for (auto& [id, call] : boundaries->calls) {
    const BodyPorts& callee = boundaries->bodies[call.callee];
    for (auto& [index, node] : call.calls) {
      const auto entry = callee.entries.find(index);
      node->set_assigned_device_name(entry == callee.entries.end() ? callee.decider
                                                                   : entry->second->assigned_device_name());
    }
    for (Node* node : call.returns) {
      int64_t index = 0;
      if (!GetNodeAttr(node->attrs(), kIndexAttr, &index).ok()) continue;
      const auto result = callee.results.find(index);
      if (result != callee.results.end()) node->set_assigned_device_name(result->second->assigned_device_name());
    }
  }
}

}  // namespace tensorflow_recursion
