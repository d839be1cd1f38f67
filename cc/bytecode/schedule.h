// Says which nodes of a function can be emitted next, and which parts of conditionals.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_SCHEDULE_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_SCHEDULE_H_

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "cc/bytecode/blocks.h"

namespace tensorflow_recursion {

using NodeSet = std::set<NodeId>;

// What of a conditional can be emitted at once: all of it, unless some of it reads what comes later.
struct ConditionalPart {
  NodeId branch;
  NodeSet nodes;               // on its sides, and its merges
  std::vector<NodeId> merges;  // in the order to define them
};

// Says which nodes of one function can be emitted next; SetEmitted() keeps it up to date. A node can be emitted once
// all that it reads is. Nothing looks at all nodes again and again: a node is looked at when one that it reads is
// emitted.
class Schedule {
 public:
  // `nodes` are those of the function and its loops, each behind its sources.
  Schedule(const FlowGraph& flow, Blocks* blocks, const std::vector<NodeId>& nodes);

  const NodeSet& all() const { return all_; }
  bool IsDone() const { return num_emitted_ == all_.size(); }
  // The first node of the block and of `allowed` that can be emitted now, kNone if there is none. The order computes
  // arguments right before their call. Merges, and what ends an iteration, come with a conditional.
  NodeId FindNode(BlockId block, const NodeSet& allowed) const;
  void SetEmitted(NodeId id);
  // What of a conditional in the block can be emitted, and is in `allowed`; nullopt if there is none. The conditional
  // of the branch `last` is taken if there is no other.
  std::optional<ConditionalPart> FindPart(BlockId block, const NodeSet& allowed, NodeId last) const;

  // How often a node was looked at since it was made, which grows with the edges of the function.
  size_t num_visits() const { return num_visits_; }

 private:
  struct State {
    size_t position = 0;  // in the order to try
    bool is_emitted = false;
    size_t num_missing = 0;       // inputs that are yet to be emitted
    std::vector<NodeId> readers;  // once for each input that reads the node
  };
  // What is on the sides of a branch within a block, and its merges.
  struct Conditional {
    size_t num_left = 0;  // nodes that are yet to be emitted
    NodeSet ready;        // of these, the ones that miss no input
  };
  using ConditionalKey = std::pair<NodeId, BlockId>;  // its branch, and the block that it is in

  void FindOrder(const std::vector<NodeId>& nodes);
  void FindReaders();
  void SetReady(NodeId id);
  void SetOpen(const ConditionalKey& key);
  NodeSet PossibleIn(const ConditionalKey& key, const NodeSet& allowed) const;
  bool IsIn(const ConditionalKey& key, NodeId id) const;
  template <typename Visit>
  void ForEachConditional(NodeId id, Visit visit) const;

  const FlowGraph& flow_;
  Blocks& blocks_;
  NodeSet all_;
  std::map<NodeId, State> states_;
  size_t num_emitted_ = 0;
  mutable size_t num_visits_ = 0;
  std::map<BlockId, std::map<size_t, NodeId>> ready_;  // that can be emitted, by block and position
  std::map<ConditionalKey, Conditional> conditionals_;
  std::map<BlockId, NodeSet> open_;  // branches that are emitted, of the block's conditionals with ready nodes
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_SCHEDULE_H_
