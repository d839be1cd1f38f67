// Which slots of a frame hold the inputs that wait, and which inputs may share one.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_SLOTS_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_SLOTS_H_

#include <cstdint>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "cc/program/firing_history.h"

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
  // `nodes` are those of the region.
  SlotPlanner(const FlowGraph& flow, RegionId region, const std::vector<NodeId>& nodes);

  // Orders the requests (call this before the others), then places one after the other. Returns the slot of
  // each item.
  void Sort(std::vector<SlotRequest>* requests) const;
  std::vector<uint32_t> Place(const SlotRequest& request);

  uint32_t num_slots() const { return static_cast<uint32_t>(slots_.size()); }

 private:
  using Events = FiringHistory::Events;

  // A value that lies in a slot for some time.
  struct Use {
    // What has surely happened when the value comes, for each way in which it may come. A slot that is looked at before
    // its value has come has one entry more: what has happened by then.
    std::vector<Events> before;
    int released = 0;  // the event with which the value has gone; 0: never
    bool needs_empty = false;
    bool leaves_empty = false;
  };

  Use UseOf(const SlotRequest& request, const SlotRequest::Item& item) const;
  void CollectWays(const Source& source, std::vector<Events>* ways) const;
  bool NeverMeet(const Use& a, const Use& b) const;
  bool Precedes(const Use& first, const Use& second, const Events& way) const;
  bool MayShare(uint32_t slot, const Use& use) const;
  std::vector<uint32_t> PlaceApart(const std::vector<Use>& uses) const;
  std::vector<uint32_t> PlaceTogether(const std::vector<Use>& uses) const;
  std::vector<uint32_t> PlaceBehind(std::vector<Use> uses);

  const FlowGraph& flow_;
  FiringHistory history_;
  const bool shares_;  // whether slots are shared at all
  std::vector<std::vector<Use>> slots_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_SLOTS_H_
