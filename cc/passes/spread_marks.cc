// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/spread_marks.h"

#include "cc/base/names.h"

namespace tensorflow_recursion {

using tensorflow::Graph;
using tensorflow::Node;

void MarkOwners(const GraphRegions& regions, Graph* graph) {
  for (Node* node : graph->op_nodes()) {
    if (regions.IsStructural(node) || node->attrs().Find(kBodyAttr) != nullptr) continue;
    node->AddAttr(kBodyAttr, regions.FunctionOf(node));
  }
}

void MarkPartialLoops(const GraphRegions& regions, const CallDecisions& decisions, Graph* graph) {
  for (Node* node : graph->op_nodes()) {
    const bool is_part = node->IsEnter() || node->IsNextIteration() || node->IsExit() || node->IsLoopCond();
    if (!is_part || regions.IsStructural(node)) continue;
    const auto loop = node->IsEnter() ? regions.LoopOf(node) : regions.region(node);
    if (decisions.IsPartial(loop)) node->AddAttr(kPartialLoopAttr, true);
  }
}

}  // namespace tensorflow_recursion
