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

// A part of a conditional that can be emitted at once. Mostly it is the whole conditional, unless some nodes of it read
// what comes later.
struct ConditionalPart {
  NodeId branch;
  // The nodes on its sides, and its merges.
  NodeSet nodes;
  // The merges, in the order in which they are to be defined.
  std::vector<NodeId> merges;
};

// Says which nodes of one function can be emitted next. A node can be emitted when all nodes that it reads have been,
// as SetEmitted() says. So as not to look at all nodes again and again, it looks at a node when one that it reads is
// emitted.
class Schedule {
 public:
  // `nodes` are those of the function and its loops, each behind its sources.
  Schedule(const FlowGraph& flow, Blocks* blocks, const std::vector<NodeId>& nodes);

  const NodeSet& all() const { return all_; }
  bool IsDone() const { return num_emitted_ == all_.size(); }
  // The first node of the block and of `allowed` that can be emitted now, kNone if there is none. Arguments come right
  // before their call. Merges, and what ends an iteration, are not among these: they come with a conditional.
  NodeId FindNode(BlockId block, const NodeSet& allowed) const;
  void SetEmitted(NodeId id);
  // The part of a conditional in the block that can be emitted and is in `allowed`; nullopt if there is none. The
  // conditional of the branch `last` is taken only if there is no other.
  std::optional<ConditionalPart> FindPart(BlockId block, const NodeSet& allowed, NodeId last) const;

  // How often nodes were looked at, for tests. It grows in proportion to the edges of the function.
  size_t num_visits() const { return num_visits_; }

 private:
  // What is known of a node while nodes are put in an order.
  struct State {
    // Where the node is in the order in which nodes are tried.
    size_t position = 0;
    bool is_emitted = false;
    // How many of its inputs have not been emitted yet.
    size_t num_missing = 0;
    // Who reads it. A node that reads it by several inputs is there several times.
    std::vector<NodeId> readers;
  };
  // What is on the sides of a branch within a block, and its merges.
  struct Conditional {
    // How many of its nodes have not been emitted yet, and which of these have all their inputs.
    size_t num_left = 0;
    NodeSet ready;
  };
  // The conditional's branch, and the block that it is in.
  using ConditionalKey = std::pair<NodeId, BlockId>;

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
  // The nodes that can be emitted, by their block and their position.
  std::map<BlockId, std::map<size_t, NodeId>> ready_;
  std::map<ConditionalKey, Conditional> conditionals_;
  // By block, the branches of its conditionals that have been emitted themselves, while nodes of theirs are ready.
  std::map<BlockId, NodeSet> open_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_SCHEDULE_H_
