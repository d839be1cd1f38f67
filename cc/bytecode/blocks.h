// Finds for each node of a function the branches it is in: the way back from dataflow to nested conditionals.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_BLOCKS_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_BLOCKS_H_

#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "cc/base/ids.h"

namespace tensorflow_recursion {

using BlockId = Id<struct BlockTag>;

// A block is what runs when certain branches have taken certain sides: the whole region, one side of a conditional in
// it, a side of a conditional in that side, and so on. For example, in
//
//     y = cond(p, lambda: x + 1, lambda: 2 * x)
//
// the addition is in the block (region, p, true), the product in (region, p, false), and the merge of both, which lives
// whatever p is, in the block of the region.
struct Block {
  RegionId region;
  // The block that this one is a part of; kNone for the block that is the whole region.
  BlockId parent;
  // The kBranch or kSwitchN that decides, and which of its ports lives here.
  NodeId branch;
  int side = 0;
};

// The blocks of one function. They are made node by node, in the order of SortNodes().
class Blocks {
 public:
  explicit Blocks(const FlowGraph& flow) : flow_(flow), block_of_(flow.nodes.size(), kNone) {}

  // Finds the block of a node whose sources have theirs. Returns false if there is none: for example, if its inputs
  // live on different sides, so that it would never run, or run with some of them dead.
  bool Place(NodeId node);

  BlockId of(NodeId node) const { return block_of_[node]; }
  // The block where a value lives: what comes out of a switch lives on a side of its branch. kNone if there is none.
  BlockId OfSource(const Source& source);
  BlockId OfRegion(RegionId region);
  const Block& operator[](BlockId block) const { return blocks_[block]; }
  bool IsWhole(BlockId block) const { return blocks_[block].parent == kNone; }
  // Whether `inner` is `outer` or part of it.
  bool Contains(BlockId outer, BlockId inner) const;
  // Side `side` of `branch` within `block`; kNone if nothing is in it.
  BlockId FindSide(BlockId block, NodeId branch, int side) const;
  // The branch that a merge joins the sides of.
  NodeId BranchOfMerge(NodeId merge);

 private:
  // What tells the branches of kSwitchN apart: the region, the index, and how many sides there are.
  using Choice = std::tuple<RegionId, Source, ConstantId, int>;

  static Choice ChoiceOf(const FlowNode& node);
  BlockId Side(BlockId parent, NodeId branch, int side);
  BlockId Deeper(BlockId a, BlockId b) const;
  BlockId Common(BlockId a, BlockId b) const;
  NodeId BranchOf(NodeId node) const;
  BlockId OfAll(const FlowNode& node);
  BlockId OfMerge(const FlowNode& node);
  BlockId OfUnion(const FlowNode& node);

  const FlowGraph& flow_;
  IdVector<NodeId, BlockId> block_of_;
  IdVector<BlockId, Block> blocks_;
  std::map<std::tuple<RegionId, BlockId, NodeId, int>, BlockId> ids_;
  // Several kSwitchN of a region that have one index and as many sides are one branch. The first of them stands for
  // all.
  std::map<Choice, NodeId> choices_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_BLOCKS_H_
