// A frame is one invocation of a region: its place in the call tree, its values, its pending counts.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_FRAME_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_FRAME_H_

#include <cstddef>
#include <cstdint>

#include "absl/base/optimization.h"
#include "cc/base/ids.h"
#include "cc/executor/frame_tag.h"
#include "cc/program/program.h"
#include "cc/values/invariants.h"
#include "cc/values/slabs.h"

namespace tensorflow_recursion {

class Inbox;

// What one call of a function, or one iteration of a loop, keeps while it runs. If fib is not compiled to bytecode,
// fib(3) runs as five frames of one region (fib's body): its own, two for fib(2) and fib(1), and two more that fib(2)
// opens.
//
// A frame is what the theory of tagged dataflow calls a tag: the pair (parent, call site) tells apart the values that
// flow along the same edge in different calls. In memory it is this header, then a Value for each slot of the region,
// then a pending count for each operator that waits for more than one thing.
//
// A frame belongs to one worker. Nobody else touches it, which is why nothing here is atomic; others read only
// `parent`, `region`, `site_op`, `owner` and `depth`, which never change while the frame lives. The frame ends when
// `live` drops to zero. `live` counts everything that can still happen in it: operators and calls that are queued,
// kernels that run, values that wait for their turn, arguments that have not come, child frames that are open, and
// membership in the list of frames with incomplete call sites.
struct Frame {
  // While the memory is free, `parent` is the next free frame, and there is no region.
  Frame* parent;
  const Region* region;
  // The inbox of the worker that the frame belongs to.
  Inbox* owner;
  // The call site that has opened the frame, in the parent's region; kNone for the root and for iterations of loops.
  OpId site_op;
  uint32_t live;
  // How many calls are above this frame.
  uint32_t depth;
  union {
    // How many arguments of the call have not come yet.
    uint32_t missing;
    // Which iteration of its loop the frame is.
    uint32_t iteration;
  };
  // Where the frame stands in the worker's IncompleteSites, and how many of its call sites are incomplete.
  uint32_t incomplete_position;
  uint16_t incomplete_sites;
  // Some of the values have something to release.
  uint16_t owns_tensors : 1;
  // Some of the calls may be in the worker's PartialCalls.
  uint16_t has_partial_calls : 1;
  // How far the frame is from the first one of its slab, in kFrameUnit bytes.
  uint16_t slab_offset : 14;

  Value* values() { return reinterpret_cast<Value*>(this + 1); }
  const Value* values() const { return reinterpret_cast<const Value*>(this + 1); }
  // The slots of an operator's own: those of its inputs, or of what it has to remember.
  Value* slots_of(const Op& op) {
    DCHECK(!op.reads_table());
    return values() + op.slot;
  }
  const Value* slots_of(const Op& op) const {
    DCHECK(!op.reads_table());
    return values() + op.slot;
  }
  uint16_t* pending() { return reinterpret_cast<uint16_t*>(values() + region->num_slots); }
  const uint16_t* pending() const { return reinterpret_cast<const uint16_t*>(values() + region->num_slots); }

  // Keeps `value` in a slot; the frame owns from here on what the value owns.
  void Keep(SlotId slot, const Value& value) {
    value.CopyTo(&values()[slot]);
    if (value.owns()) owns_tensors = 1;
  }

  // The frame's name in messages between devices. The root's name is returned where values stay on one device.
  FrameTag tag() const {
    const SlotId slot = region->tag_slot;
    if (ABSL_PREDICT_TRUE(slot == kNone)) return {};
    return {values()[slot].bits, values()[slot + 1].int64};
  }
  // The invariants of the recursion that this frame is part of, if that has some. The frame of the call that entered
  // the recursion owns them.
  const Invariants& invariants() const { return *values()[region->invariants_slot].invariants; }
  Invariants* mutable_invariants() { return values()[region->invariants_slot].invariants; }
  void EnterWith(Invariants* invariants) {
    values()[region->invariants_slot] = Value::Own(invariants);
    owns_tensors = 1;
  }
  void ReadInvariantsOf(const Frame& around) {
    values()[region->invariants_slot] = Value::Scalar(around.values()[around.region->invariants_slot].bits);
  }
  void set_tag(const FrameTag& tag) {
    Value* slots = values() + region->tag_slot;
    slots[0] = Value::Scalar(tag.id);
    slots[1] = Value::Scalar(static_cast<uint64_t>(tag.iteration));
  }
};

inline constexpr size_t kFrameUnit = 16;

static_assert(sizeof(Frame) % alignof(Value) == 0, "values follow the header");
static_assert(sizeof(Frame) == 48, "a deep recursion pays for every byte");
static_assert(kSlabBytes / kFrameUnit <= (1 << 14), "slab_offset has 14 bits");

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_FRAME_H_
