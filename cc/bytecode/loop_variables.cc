// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/loop_variables.h"

#include <algorithm>

#include "cc/analysis/node_facts.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Node;

// Whether the variable comes from around the loop. In a damaged graph it may not.
bool IsEntered(const Node* merge) {
  const auto& edges = merge->in_edges();
  return std::any_of(edges.begin(), edges.end(), [](const tensorflow::Edge* edge) { return edge->src()->IsEnter(); });
}

LoopVariable VariableOf(const FlowGraph& flow, const FlowLoop& loop, const Node* merge) {
  LoopVariable variable;
  variable.entry = loop.entries.at(merge);
  for (const tensorflow::Edge* edge : merge->in_edges()) {
    if (edge->src()->IsEnter()) {
      variable.start = flow.nodes[loop.start].inputs[PositionIn(loop.enters, edge->src())];
    } else if (edge->src()->IsNextIteration()) {
      variable.next = flow.nodes[loop.next].inputs[PositionIn(loop.nexts, edge->src())];
    }
  }
  return variable;
}

}  // namespace

std::vector<LoopVariable> VariablesOf(const FlowGraph& flow, const FlowLoop& loop) {
  std::vector<LoopVariable> variables;
  variables.reserve(loop.merges.size());
  for (const Node* merge : loop.merges) variables.push_back(VariableOf(flow, loop, merge));
  for (size_t i = 0; i < loop.enters.size(); ++i) {
    const auto constant = loop.entries.find(loop.enters[i]);
    if (constant == loop.entries.end()) continue;
    variables.push_back({constant->second, flow.nodes[loop.start].inputs[i], std::nullopt});
  }
  return variables;
}

bool IsSimpleLoop(const FlowGraph& flow, const FlowLoop& loop) {
  if (loop.is_partial || loop.crosses_devices || loop.next == kNone || !loop.index_entries.empty()) return false;
  if (!std::all_of(loop.merges.begin(), loop.merges.end(), IsEntered)) return false;
  return std::all_of(loop.enters.begin(), loop.enters.end(),
                     [&](const Node* enter) { return IsLoopConstant(*enter) || loop.entries.count(enter) == 0; });
}

}  // namespace tensorflow_recursion
