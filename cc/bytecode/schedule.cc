// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/schedule.h"

#include <algorithm>

namespace tensorflow_recursion {

Schedule::Schedule(const FlowGraph& flow, Blocks* blocks, const StepWriter& writer, std::vector<NodeId> nodes)
    : flow_(flow), blocks_(*blocks), writer_(writer), sorted_(std::move(nodes)) {
  FindOrder();
  FindConditionals();
}

// Depth first from the results: what a node reads comes right before it. What no result depends on comes last.
void Schedule::FindOrder() {
  const auto is_end = [&](NodeId id) {
    const OpKind kind = flow_.nodes[id].kind;
    return kind == OpKind::kResult || kind == OpKind::kExit || kind == OpKind::kLoopNext;
  };
  std::vector<NodeId> pending;
  for (const bool ends : {false, true}) {  // the last is looked at first
    for (NodeId id : sorted_) {
      if (is_end(id) == ends) pending.push_back(id);
    }
  }
  NodeSet seen;
  while (!pending.empty()) {
    const NodeId id = pending.back();
    if (all_.count(id) > 0) {
      pending.pop_back();
    } else if (!seen.insert(id).second) {  // all that it reads has its place
      pending.pop_back();
      all_.insert(id);
      nodes_[blocks_.of(id)].push_back(id);
    } else {
      std::vector<NodeId> sources;
      ForEachSource(flow_.nodes[id], [&](const Source& source) {
        if (seen.count(source.node) == 0) sources.push_back(source.node);
      });
      pending.insert(pending.end(), sources.rbegin(), sources.rend());
    }
  }
}

void Schedule::FindConditionals() {
  for (NodeId id : sorted_) {
    BlockId block = blocks_.of(id);
    if (flow_.nodes[id].kind == OpKind::kMerge) conditionals_[{block, blocks_.BranchOfMerge(id)}].push_back(id);
    for (; !blocks_.IsWhole(block); block = blocks_[block].parent) {
      conditionals_[{blocks_[block].parent, blocks_[block].branch}].push_back(id);
    }
  }
}

bool Schedule::CanEmit(NodeId id) const {
  const OpKind kind = flow_.nodes[id].kind;
  const bool comes_with_conditional = kind == OpKind::kMerge || kind == OpKind::kLoopNext;
  return !comes_with_conditional && emitted_.count(id) == 0 && IsReady(id, {});
}

// Control inputs order effects, of which there are none.
bool Schedule::IsReady(NodeId id, const NodeSet& also) const {
  const std::vector<Input>& inputs = flow_.nodes[id].inputs;
  return std::all_of(inputs.begin(), inputs.end(), [&](const Input& input) {
    return input.is_constant() || emitted_.count(input.source.node) > 0 || also.count(input.source.node) > 0 ||
           writer_.Knows(input.source);
  });
}

// Takes a conditional that can be emitted as a whole if there is one. Two conditionals on the same condition are one
// branch; if the second reads what the first makes, it is emitted in parts.
std::optional<ConditionalPart> Schedule::FindPart(BlockId block, const NodeSet& allowed, NodeId last) {
  enum Rank { kNothing, kLast, kPart, kWhole };
  Rank best = kNothing;
  ConditionalPart found;
  for (auto at = conditionals_.lower_bound({block, NodeId(0)});
       best != kWhole && at != conditionals_.end() && at->first.first == block; ++at) {
    const NodeId branch = at->first.second;
    if (at->second.empty() || emitted_.count(branch) == 0) continue;
    bool has_all = false;
    NodeSet possible = PossibleIn(block, &at->second, allowed, &has_all);
    if (possible.empty()) continue;
    const Rank rank = branch == last ? kLast : has_all ? kWhole : kPart;
    if (rank <= best) continue;
    best = rank;
    found.branch = branch;
    found.nodes = std::move(possible);
  }
  if (best == kNothing) return std::nullopt;
  for (NodeId id : nodes_[block]) {
    if (found.nodes.count(id) > 0 && flow_.nodes[id].kind == OpKind::kMerge) found.merges.push_back(id);
  }
  return found;
}

// What of the conditional can be emitted now, its merges included. Those have no value before its end, so what reads
// one, though it is on a side, has to wait for another part.
NodeSet Schedule::PossibleIn(BlockId block, std::vector<NodeId>* conditional, const NodeSet& allowed,
                             bool* has_all) const {
  NodeSet on_sides;
  NodeSet merges;
  *has_all = true;
  conditional->erase(
      std::remove_if(conditional->begin(), conditional->end(), [&](NodeId id) { return emitted_.count(id) > 0; }),
      conditional->end());
  for (NodeId id : *conditional) {
    if (allowed.count(id) > 0 && IsReady(id, on_sides)) {
      (blocks_.of(id) == block ? merges : on_sides).insert(id);
    } else {
      *has_all = false;
    }
  }
  on_sides.insert(merges.begin(), merges.end());
  return on_sides;
}

}  // namespace tensorflow_recursion
