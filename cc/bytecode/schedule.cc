// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/schedule.h"

#include <algorithm>

namespace tensorflow_recursion {

Schedule::Schedule(const FlowGraph& flow, Blocks* blocks, const std::vector<NodeId>& nodes)
    : flow_(flow), blocks_(*blocks) {
  FindOrder(nodes);
  FindReaders();
}

// Goes depth first from the results, so that what a node reads comes right before it. Nodes that no result depends on
// come last.
void Schedule::FindOrder(const std::vector<NodeId>& nodes) {
  const auto is_end = [&](NodeId id) {
    const OpKind kind = flow_.nodes[id].kind;
    return kind == OpKind::kResult || kind == OpKind::kExit || kind == OpKind::kLoopNext;
  };
  std::vector<NodeId> pending;
  for (const bool ends : {false, true}) {  // the last one in `pending` is looked at first
    for (NodeId id : nodes) {
      if (is_end(id) == ends) pending.push_back(id);
    }
  }
  NodeSet seen;
  while (!pending.empty()) {
    const NodeId id = pending.back();
    if (all_.count(id) > 0) {
      pending.pop_back();
    } else if (!seen.insert(id).second) {  // all nodes that it reads have their place
      pending.pop_back();
      states_[id].position = all_.size();
      all_.insert(id);
    } else {
      std::vector<NodeId> sources;
      ForEachSource(flow_.nodes[id], [&](const Source& source) {
        if (seen.count(source.node) == 0) sources.push_back(source.node);
      });
      pending.insert(pending.end(), sources.rbegin(), sources.rend());
    }
  }
}

// Control inputs do not count, because they order effects, and there are none.
void Schedule::FindReaders() {
  for (NodeId id : all_) {
    for (const Input& input : flow_.nodes[id].inputs) {
      if (input.is_constant()) continue;
      ++states_[id].num_missing;
      if (input.is_token()) states_[input.source.node].readers.push_back(id);
    }
    ForEachConditional(id, [&](const ConditionalKey& key) { ++conditionals_[key].num_left; });
  }
  for (NodeId id : all_) {
    if (states_[id].num_missing == 0) SetReady(id);
  }
}

// Visits each conditional that holds the node. A node on a side of a conditional is also in all conditionals around it.
// A merge is in the conditional whose values it merges, and in those around that.
template <typename Visit>
void Schedule::ForEachConditional(NodeId id, Visit visit) const {
  BlockId block = blocks_.of(id);
  if (block == kNone) return;
  if (flow_.nodes[id].kind == OpKind::kMerge) visit({blocks_.BranchOfMerge(id), block});
  for (; !blocks_.IsWhole(block); block = blocks_[block].parent) visit({blocks_[block].branch, blocks_[block].parent});
}

bool Schedule::IsIn(const ConditionalKey& key, NodeId id) const {
  bool found = false;
  ForEachConditional(id, [&](const ConditionalKey& other) { found = found || other == key; });
  return found;
}

void Schedule::SetReady(NodeId id) {
  const OpKind kind = flow_.nodes[id].kind;
  const bool comes_with_conditional = kind == OpKind::kMerge || kind == OpKind::kLoopNext;
  if (!comes_with_conditional) ready_[blocks_.of(id)].emplace(states_[id].position, id);
  ForEachConditional(id, [&](const ConditionalKey& key) {
    conditionals_[key].ready.insert(id);
    SetOpen(key);
  });
}

void Schedule::SetOpen(const ConditionalKey& key) {
  const auto& [branch, block] = key;
  if (states_[branch].is_emitted && !conditionals_[key].ready.empty()) {
    open_[block].insert(branch);
  } else {
    open_[block].erase(branch);
  }
}

void Schedule::SetEmitted(NodeId id) {
  State& state = states_[id];
  state.is_emitted = true;
  ++num_emitted_;
  ready_[blocks_.of(id)].erase(state.position);
  ForEachConditional(id, [&](const ConditionalKey& key) {
    Conditional& conditional = conditionals_[key];
    --conditional.num_left;
    conditional.ready.erase(id);
    SetOpen(key);
  });
  for (auto at = conditionals_.lower_bound({id, BlockId(0)}); at != conditionals_.end() && at->first.first == id;
       ++at) {
    SetOpen(at->first);
  }
  for (NodeId reader : state.readers) {
    ++num_visits_;
    if (--states_[reader].num_missing == 0) SetReady(reader);
  }
}

NodeId Schedule::FindNode(BlockId block, const NodeSet& allowed) const {
  const auto ready = ready_.find(block);
  if (ready == ready_.end()) return kNone;
  for (const auto& [position, id] : ready->second) {
    ++num_visits_;
    if (allowed.count(id) > 0) return id;
  }
  return kNone;
}

// Takes a conditional that can be emitted as a whole if there is one. Two conditionals on the same condition are one
// branch; if the second reads what the first makes, it is emitted in parts.
std::optional<ConditionalPart> Schedule::FindPart(BlockId block, const NodeSet& allowed, NodeId last) const {
  enum Rank { kNothing, kLast, kPart, kWhole };
  const auto open = open_.find(block);
  if (open == open_.end()) return std::nullopt;
  Rank best = kNothing;
  ConditionalPart found;
  for (NodeId branch : open->second) {
    NodeSet possible = PossibleIn({branch, block}, allowed);
    if (possible.empty()) continue;
    const bool has_all = possible.size() == conditionals_.at({branch, block}).num_left;
    const Rank rank = branch == last ? kLast : has_all ? kWhole : kPart;
    if (rank <= best) continue;
    best = rank;
    found.branch = branch;
    found.nodes = std::move(possible);
    if (best == kWhole) break;
  }
  if (best == kNothing) return std::nullopt;
  for (NodeId id : found.nodes) {
    if (blocks_.of(id) == block && flow_.nodes[id].kind == OpKind::kMerge) found.merges.push_back(id);
  }
  const auto comes_before = [&](NodeId a, NodeId b) { return states_.at(a).position < states_.at(b).position; };
  std::sort(found.merges.begin(), found.merges.end(), comes_before);
  return found;
}

// The nodes of the conditional that can be emitted now, its merges included. A merge has no value before the end of the
// part, so a node on a side that reads one has to wait for another part.
NodeSet Schedule::PossibleIn(const ConditionalKey& key, const NodeSet& allowed) const {
  const NodeSet& ready = conditionals_.at(key).ready;
  NodeSet possible;
  std::map<NodeId, size_t> given;  // how many of a node's inputs are possible
  std::vector<NodeId> pending(ready.begin(), ready.end());
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    ++num_visits_;
    if (allowed.count(id) == 0) continue;
    possible.insert(id);
    const bool is_merge = blocks_.of(id) == key.second;
    if (is_merge) continue;
    for (NodeId reader : states_.at(id).readers) {
      ++num_visits_;
      if (++given[reader] == states_.at(reader).num_missing && IsIn(key, reader)) pending.push_back(reader);
    }
  }
  return possible;
}

}  // namespace tensorflow_recursion
