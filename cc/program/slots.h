// Says which slots of a frame hold the inputs that wait, and which inputs may share one.
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
  // What a slot is used for.
  enum class Kind {
    // An input of an operator that takes its inputs when it fires.
    kInput,
    // An argument of a call. Its slot must be empty until it comes, because the call may be opened without it.
    kArgument,
    // Data that waits for a branch. Its slot must be empty until then.
    kGate,
    // Something that shares its slot with nothing.
    kAlone,
  };
  NodeId node;
  // The slots must follow one another.
  bool is_block = false;
  // What one slot is for: the kind says how it is used, and unless that is kAlone, `input` is the node's input in it.
  struct Item {
    Kind kind = Kind::kAlone;
    int input = 0;
  };
  std::vector<Item> items;
};

// Lets two inputs share a slot if one has always been taken before the other can come, or if they are on the two sides
// of a branch. So a frame that waits for a call keeps what is read after the call, and little else.
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
  using FiredSet = FiringHistory::FiredSet;

  // A value that lies in a slot for some time.
  struct Use {
    // What has surely happened when the value comes, for each way in which it may come. A slot that is looked at before
    // its value has come has one entry more: what has happened by then.
    std::vector<FiredSet> before;
    // The event after which the value has gone; 0 if it stays.
    int released = 0;
    // The slot must be empty until the value comes; and it is empty again when the value has gone.
    bool needs_empty = false;
    bool leaves_empty = false;
  };

  Use UseOf(const SlotRequest& request, const SlotRequest::Item& item) const;
  void CollectWays(const Source& source, std::vector<FiredSet>* ways) const;
  bool NeverMeet(const Use& a, const Use& b) const;
  bool Precedes(const Use& first, const Use& second, const FiredSet& way) const;
  bool MayShare(uint32_t slot, const Use& use) const;
  std::vector<uint32_t> PlaceApart(const std::vector<Use>& uses) const;
  std::vector<uint32_t> PlaceTogether(const std::vector<Use>& uses) const;
  std::vector<uint32_t> PlaceBehind(std::vector<Use> uses);

  const FlowGraph& flow_;
  FiringHistory history_;
  // Whether slots are shared at all.
  const bool shares_;
  // All uses of each slot.
  std::vector<std::vector<Use>> slots_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_SLOTS_H_
