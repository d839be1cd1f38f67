// Finds what has surely happened in a frame when one of its operators fires.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_FIRING_HISTORY_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_FIRING_HISTORY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// Knows for each node of one region which other nodes have always fired before it, and which sides of branches have
// been taken. In `y = f(g(x))`, g has fired before f; on the `then` side of a branch, that side has been taken. A merge
// knows only what all its inputs have in common.
class FiringHistory {
 public:
  // What has happened in a frame by some moment, a bit for each event: a node has fired, or a branch has taken a side.
  // This is not a Condition, which says what must happen for a value to live: an operator without branches around it
  // lives always, but has a long history. Histories of neighbours differ by a few bits, and are compared bit by bit.
  using FiredSet = std::vector<uint64_t>;

  // `members` are the region's nodes.
  FiringHistory(const FlowGraph& flow, std::vector<NodeId> members);

  size_t num_nodes() const { return members_.size(); }

  // To be called before everything below. The sets take space in proportion to the square of num_nodes().
  void Compute();

  // A node's position in an order in which the nodes may fire.
  int PositionOf(NodeId node) const { return position_[Local(node)]; }

  // What has happened when a value comes from `source`, when any of the node's inputs has come, and when everything has
  // come that the node waits for, but it has not fired yet.
  FiredSet Before(const Source& source) const;
  FiredSet BeforeAny(const FlowNode& node) const;
  FiredSet BeforeFired(NodeId node) const;

  // The event that the node has fired. Never 0.
  int Fired(NodeId node) const { return 3 * Local(node) + 1; }

  static bool Has(const FiredSet& fired, int event) { return ((fired[event / 64] >> (event % 64)) & 1) != 0; }

  // Whether the two never happen in one frame, because some branch takes different sides in them.
  bool Exclude(const FiredSet& a, const FiredSet& b) const;

 private:
  void ComputeNode(NodeId node);
  // The node's position among members_. It is searched for, because a table of all nodes of the graph for each of its
  // regions would be large.
  int Local(NodeId node) const {
    return static_cast<int>(std::lower_bound(members_.begin(), members_.end(), node) - members_.begin());
  }
  int Side(NodeId branch, int port) const { return 3 * Local(branch) + 2 + port; }

  const FlowGraph& flow_;
  // The nodes of the region, sorted, and those of them that are branches.
  std::vector<NodeId> members_;
  std::vector<NodeId> branches_;
  // By position among members_: where the node comes in the order of firing, and what has happened when it has fired.
  std::vector<int> position_;
  std::vector<FiredSet> happened_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_FIRING_HISTORY_H_
