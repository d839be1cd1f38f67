// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/spread_hosts.h"

#include <set>
#include <string>

namespace tensorflow_recursion {

using tensorflow::Graph;
using tensorflow::Node;

void FindHosts(const Graph& graph, const GraphRegions& regions, Boundaries* boundaries) {
  for (const Node* node : graph.op_nodes()) {
    if (regions.IsStructural(node)) continue;
    const std::string& function = regions.FunctionOf(node);
    if (!function.empty()) boundaries->bodies[function].hosts.insert(node->assigned_device_name());
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [id, call] : boundaries->calls) {
      if (call.caller.empty() || call.caller == call.callee) continue;
      const std::set<std::string>& of_callee = boundaries->bodies[call.callee].hosts;
      std::set<std::string>& hosts = boundaries->bodies[call.caller].hosts;
      const size_t before = hosts.size();
      hosts.insert(of_callee.begin(), of_callee.end());
      changed = changed || hosts.size() > before;
    }
  }
}

bool IsSpread(const Graph& graph, const GraphRegions& regions, const Boundaries& boundaries) {
  std::set<std::string> devices;
  for (const auto& [name, body] : boundaries.bodies) devices.insert(body.hosts.begin(), body.hosts.end());
  for (const Node* node : graph.op_nodes()) {
    if (regions.IsStructural(node)) devices.insert(node->assigned_device_name());
  }
  return devices.size() > 1;
}

}  // namespace tensorflow_recursion
