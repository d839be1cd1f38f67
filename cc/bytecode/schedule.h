// Says which nodes of a function can be emitted next, and which parts of conditionals.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_SCHEDULE_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_SCHEDULE_H_

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "cc/bytecode/blocks.h"
#include "cc/bytecode/step_writer.h"

namespace tensorflow_recursion {

using NodeSet = std::set<NodeId>;

// What of a conditional can be emitted at once: all of it, unless some of it reads what comes later.
struct ConditionalPart {
  NodeId branch;
  NodeSet nodes;               // on its sides, and its merges
  std::vector<NodeId> merges;  // in the order to define them
};

// Of one function; SetEmitted() keeps it up to date. A node can be emitted once what it reads is, or `writer` knows it.
class Schedule {
 public:
  // `nodes` are those of the function and its loops, each behind its sources.
  Schedule(const FlowGraph& flow, Blocks* blocks, const StepWriter& writer, std::vector<NodeId> nodes);

  const NodeSet& all() const { return all_; }
  bool IsDone() const { return emitted_ == all_; }
  // In the order to try, which computes arguments right before their call.
  const std::vector<NodeId>& NodesIn(BlockId block) { return nodes_[block]; }
  // Whether it can be now. Merges, and what ends an iteration, come with a conditional.
  bool CanEmit(NodeId id) const;
  void SetEmitted(NodeId id) { emitted_.insert(id); }
  // What of a conditional in the block can be emitted, and is in `allowed`; nullopt if there is none. The conditional
  // of the branch `last` is taken if there is no other.
  std::optional<ConditionalPart> FindPart(BlockId block, const NodeSet& allowed, NodeId last);

 private:
  void FindOrder();
  void FindConditionals();
  bool IsReady(NodeId id, const NodeSet& also) const;
  NodeSet PossibleIn(BlockId block, std::vector<NodeId>* conditional, const NodeSet& allowed, bool* has_all) const;

  const FlowGraph& flow_;
  Blocks& blocks_;
  const StepWriter& writer_;
  const std::vector<NodeId> sorted_;
  NodeSet all_;
  NodeSet emitted_;
  std::map<BlockId, std::vector<NodeId>> nodes_;  // of each block, in the order to try
  // By the block that a conditional is in and its branch: what is on its sides, and its merges. In the order of
  // sorted_; what is emitted is taken out now and then.
  std::map<std::pair<BlockId, NodeId>, std::vector<NodeId>> conditionals_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_SCHEDULE_H_
