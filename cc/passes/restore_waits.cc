// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/restore_waits.h"

#include <set>
#include <vector>

#include "cc/analysis/effects.h"
#include "cc/base/names.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;

// Whether the node may have a side effect, or is an output of a call or a loop, in which there may be some.
bool MayHaveEffect(const Node& node) { return HasEffect(node) || node.type_string() == kReturnOp || node.IsExit(); }

// Finds the nodes with effects that must run before the trigger fires, in the same frame; in a loop, in the same
// iteration.
std::vector<Node*> FindEffectsBefore(const GraphRegions& regions, const Node& trigger) {
  const RegionId region = regions.region(&trigger);
  std::vector<Node*> effects;
  std::vector<const Node*> work = {&trigger};
  std::set<const Node*> seen;
  while (!work.empty()) {
    const Node* const node = work.back();
    work.pop_back();
    for (const Edge* edge : node->in_edges()) {
      Node* const before = edge->src();
      const bool is_earlier_iteration = before->IsNextIteration();
      const bool is_outside_of_loop = before->IsEnter() && regions.output_region(before) == region;
      if (!before->IsOp() || !regions.IsReal(edge) || is_earlier_iteration || is_outside_of_loop) continue;
      if (!seen.insert(before).second) continue;
      work.push_back(before);
      if (regions.output_region(before) == region && MayHaveEffect(*before)) effects.push_back(before);
    }
  }
  return effects;
}

}  // namespace

void RestoreWaits(const GraphRegions& regions, Graph* graph) {
  for (Node* node : graph->op_nodes()) {
    if (node->type_string() != "ControlTrigger") continue;
    std::set<const Node*> waited_for;
    for (const Edge* edge : node->in_edges()) waited_for.insert(edge->src());
    for (Node* effect : FindEffectsBefore(regions, *node)) {
      // The graph's own search for duplicates takes time in proportion to the edges.
      if (waited_for.insert(effect).second) graph->AddControlEdge(effect, node, /*allow_duplicates=*/true);
    }
  }
}

}  // namespace tensorflow_recursion
