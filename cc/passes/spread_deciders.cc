// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/spread_deciders.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cc/analysis/late_values.h"
#include "cc/base/names.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {

using tensorflow::GetNodeAttr;
using tensorflow::Node;

bool HasSplitArguments(const Boundaries& boundaries) {
  return std::any_of(boundaries.bodies.begin(), boundaries.bodies.end(), [](const auto& body) {
    const auto& entries = body.second.entries;
    return std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
      return entry.second->assigned_device_name() != entries.begin()->second->assigned_device_name();
    });
  });
}

void FindLateArguments(const FlowGraph& flow, Boundaries* boundaries) {
  std::vector<NodeId> order;
  if (!SortNodes(flow, &order).ok()) return;
  const LateValues late = FindValuesAfterSideEffects(flow, order);
  for (auto& [name, body] : boundaries->bodies) {
    for (const auto& [index, entry] : body.entries) {
      if (late.IsLateArgument(name, static_cast<int>(index))) body.late_arguments.insert(index);
    }
  }
}

void ChooseDeciders(Boundaries* boundaries) {
  for (auto& [name, body] : boundaries->bodies) {
    // The weight of an argument that is never late: more than that of all late ones together, which weigh 1 each.
    const int in_time = static_cast<int>(body.entries.size()) + 1;
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
