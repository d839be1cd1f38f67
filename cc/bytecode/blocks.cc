// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/blocks.h"

#include <algorithm>
#include <set>

namespace tensorflow_recursion {

bool Blocks::Place(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  if (node.kind == OpKind::kSwitchN) choices_.try_emplace(ChoiceOf(node), id);
  if (node.kind == OpKind::kMerge) {
    block_of_[id] = OfMerge(node);
  } else if (node.kind == OpKind::kUnion) {
    block_of_[id] = OfUnion(node);
  } else {
    block_of_[id] = OfAll(node);
  }
  return block_of_[id] != kNone;
}

BlockId Blocks::OfRegion(RegionId region) {
  const auto [position, is_new] = ids_.try_emplace({region, kNone, kNone, 0});
  if (is_new) position->second = blocks_.Add({region, kNone, kNone, 0});
  return position->second;
}

BlockId Blocks::OfSource(const Source& source) {
  const BlockId block = block_of_[source.node];
  if (block == kNone || source.port == Source::kWholeNode) return block;
  const NodeId branch = BranchOf(source.node);
  return branch == kNone ? block : Side(block, branch, source.port);
}

Blocks::Choice Blocks::ChoiceOf(const FlowNode& node) {
  const Input& index = node.inputs[1];
  return {node.region, index.is_constant() ? Source() : index.source, index.constant, node.num_ports};
}

// The branch that decides which port of the node lives; kNone if all do.
NodeId Blocks::BranchOf(NodeId id) const {
  const FlowNode& node = flow_.nodes[id];
  switch (node.kind) {
    case OpKind::kBranch:
      return id;
    case OpKind::kSwitch:
      return node.branch;
    case OpKind::kSwitchN:
      return choices_.at(ChoiceOf(node));
    default:
      return kNone;
  }
}

// Returns side `side` of `branch` within `parent`. If `parent` is itself on a side of that branch, this is `parent`, or
// kNone if it is on another side, because what is on both never runs.
BlockId Blocks::Side(BlockId parent, NodeId branch, int side) {
  for (BlockId block = parent; block != kNone; block = blocks_[block].parent) {
    if (blocks_[block].branch == branch) return blocks_[block].side == side ? parent : kNone;
  }
  const RegionId region = blocks_[parent].region;
  const auto [position, is_new] = ids_.try_emplace({region, parent, branch, side});
  if (is_new) position->second = blocks_.Add({region, parent, branch, side});
  return position->second;
}

BlockId Blocks::FindSide(BlockId block, NodeId branch, int side) const {
  const auto position = ids_.find({blocks_[block].region, block, branch, side});
  return position == ids_.end() ? BlockId() : position->second;
}

bool Blocks::Contains(BlockId outer, BlockId inner) const {
  for (; inner != kNone; inner = blocks_[inner].parent) {
    if (inner == outer) return true;
  }
  return false;
}

BlockId Blocks::Deeper(BlockId a, BlockId b) const {
  if (a == kNone || b == kNone) return kNone;
  if (Contains(a, b)) return b;
  return Contains(b, a) ? a : BlockId();
}

BlockId Blocks::Common(BlockId a, BlockId b) const {
  while (a != kNone && !Contains(a, b)) a = blocks_[a].parent;
  return a;
}

// An operator that needs all its inputs runs where the innermost of them lives.
BlockId Blocks::OfAll(const FlowNode& node) {
  BlockId block = OfRegion(node.region);
  ForEachSource(node, [&](const Source& source) { block = Deeper(block, OfSource(source)); });
  return block;
}

BlockId Blocks::OfMerge(const FlowNode& node) {
  BlockId parent;
  NodeId branch;
  std::set<int> sides;
  for (const Input& input : node.inputs) {
    const BlockId side = input.is_constant() ? BlockId() : OfSource(input.source);
    if (side == kNone || IsWhole(side)) return kNone;
    const Block& block = blocks_[side];
    if (!sides.empty() && (block.parent != parent || block.branch != branch)) return kNone;
    parent = block.parent;
    branch = block.branch;
    if (!sides.insert(block.side).second) return kNone;
  }
  const bool has_all = branch != kNone && sides.size() == static_cast<size_t>(flow_.nodes[branch].num_ports);
  return has_all ? parent : BlockId();
}

// A union waits for effects, dead or alive, of which a compiled function has none. So it is in the innermost block that
// contains all that it waits for.
BlockId Blocks::OfUnion(const FlowNode& node) {
  BlockId block;
  for (const Source& control : node.controls) {
    const BlockId other = OfSource(control);
    if (other == kNone) return kNone;
    block = block == kNone ? other : Common(block, other);
  }
  return block == kNone ? OfRegion(node.region) : block;
}

NodeId Blocks::BranchOfMerge(NodeId merge) { return blocks_[OfSource(flow_.nodes[merge].inputs[0].source)].branch; }

}  // namespace tensorflow_recursion
