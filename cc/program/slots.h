// Which slots of a frame hold the inputs that wait, and which inputs may share one.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_SLOTS_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_SLOTS_H_

#include <cstdint>
#include <vector>

#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// What an operator keeps in slots until it fires.
struct SlotRequest {
  enum class Kind {
    kInput,     // an input of an operator that takes its inputs when it fires
    kArgument,  // of a call: its slot must be empty until it comes, as the call may be opened without it
    kGate,      // data that waits for the branch: its slot must be empty until then
    kAlone,     // shares with nothing
  };
  NodeId node;
  bool is_block = false;  // its slots must follow one another
  struct Item {
    Kind kind = Kind::kAlone;
    int input = 0;  // of the node, unless kAlone
  };
  std::vector<Item> items;
};

// Two inputs share a slot if one has always been taken before the other can come, or if they are on the
// two sides of a branch. A frame that waits for a call keeps what is read after it, and little else.
class SlotPlanner {
 public:
  SlotPlanner(const FlowGraph& flow, RegionId region);

  // Orders the requests (call this before the others), then places one after the other. Returns the slot of
  // each item.
  void Sort(std::vector<SlotRequest>* requests) const;
  std::vector<uint32_t> Place(const SlotRequest& request);

  uint32_t num_slots() const { return static_cast<uint32_t>(slots_.size()); }

 private:
  using Bits = std::vector<uint64_t>;  // what has happened: operators that have fired, sides of branches

  // A tenant of a slot.
  struct Use {
    // What has happened when it comes, by the ways that lead there, and when its slot is looked at without it.
    std::vector<Bits> before;
    int released = 0;  // the event with which it has gone; 0: never
    bool needs_empty = false;
    bool leaves_empty = false;
  };

  void Order();
  void Compute(NodeId node);
  Bits Before(const Source& source) const;
  Bits BeforeAny(const FlowNode& node) const;
  Bits BeforeFired(NodeId node) const;
  Use UseOf(const SlotRequest& request, const SlotRequest::Item& item) const;
  void CollectWays(const Source& source, std::vector<Bits>* ways) const;
  bool NeverMeet(const Use& a, const Use& b) const;
  bool Precedes(const Use& first, const Use& second, const Bits& way) const;
  bool Exclude(const Bits& a, const Bits& b) const;
  bool MayShare(uint32_t slot, const Use& use) const;
  std::vector<uint32_t> PlaceApart(const std::vector<Use>& uses) const;
  std::vector<uint32_t> PlaceTogether(const std::vector<Use>& uses) const;

  int Fired(NodeId node) const { return 3 * local_[node] + 1; }
  int Side(NodeId branch, int port) const { return 3 * local_[branch] + 2 + port; }

  const FlowGraph& flow_;
  bool shares_ = true;
  std::vector<NodeId> members_;  // the region's nodes
  std::vector<NodeId> branches_;
  IdVector<NodeId, int> local_;     // a node's position among members_
  IdVector<NodeId, int> position_;  // a node's position in the order
  std::vector<Bits> happened_;      // by position among members_: when it has fired
  std::vector<std::vector<Use>> slots_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_SLOTS_H_
