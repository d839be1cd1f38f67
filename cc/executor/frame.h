// One invocation of a region: its place in the call tree, its values, its pending counts.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_FRAME_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_FRAME_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cc/program/program.h"
#include "cc/values/slabs.h"

namespace tensorflow_recursion {

class Worker;

// The tag (parent, site) of the theory, and what flows under it. A frame belongs to one worker, the
// only one to touch it beyond `parent`, `region`, `site_op`, `owner` and `depth`, which never change
// while it lives. It ends when `live` drops to zero: no operator queued, no child open, no kernel
// running, no argument missing. A child counts as one in its parent's `live`.
struct Frame {
  Frame* parent;         // while the record is free: the next free one
  const Region* region;  // nullptr while the record is free
  Worker* owner;
  uint32_t site_op;  // the call, in the parent's region; kNone for the root and for loop iterations
  uint32_t live;
  uint32_t depth;  // calls above
  union {
    uint32_t missing;    // arguments that have not come yet
    uint32_t iteration;  // of a loop
  };
  uint32_t partial_position;  // in the worker's list of frames with partial sites
  uint16_t incomplete_sites;  // sites that have some arguments, but neither all nor an open frame
  uint16_t owns_tensors : 1;
  uint16_t has_partial_calls : 1;  // some calls were opened before all their arguments had come, or have lost some
  uint16_t slab_offset : 14;       // from the slab's first frame, in kFrameUnit bytes

  Value* values() { return reinterpret_cast<Value*>(this + 1); }
  uint16_t* pending() { return reinterpret_cast<uint16_t*>(values() + region->num_slots); }
};

inline constexpr size_t kFrameUnit = 16;

static_assert(sizeof(Frame) % alignof(Value) == 0, "values follow the header");
static_assert(sizeof(Frame) == 48, "a deep recursion pays for every byte");
static_assert(kSlabBytes / kFrameUnit <= (1 << 14), "slab_offset has 14 bits");

// A worker's frames, in slabs per region: malloc would double resident memory in repeated runs, and
// a slab finds every live frame when a run is abandoned. A slab without a frame is soon given back, so that what
// the frames of one region have left serves those of another, or records.
class FramePool {
 public:
  // `bytes` counts the slabs of all pools of a run; relaxed, because it is only compared with a limit.
  FramePool(const Program& program, std::atomic<int64_t>* bytes);
  ~FramePool();  // releases the tensors of frames that still live

  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  // Copies the region's template; the caller fills in the header but for `region`.
  Frame* New(const Region& region);
  void Delete(Frame* frame);

 private:
  struct Class;
  // At the beginning of its memory, before its frames.
  struct Slab {
    Class* of;
    Frame* free;
    unsigned char* fresh;  // from here on no frame has been yet
    uint32_t size;         // in frames
    uint32_t live;         // frames
    Slab* next;            // in the list of those with room
    Slab* previous;
    uint32_t index;  // in Class::slabs
    size_t bytes;

    unsigned char* frames() { return reinterpret_cast<unsigned char*>(this + 1); }
    bool is_shared() const { return bytes == kSlabBytes; }  // TakeSlab()'s
  };
  static_assert(sizeof(Slab) % kFrameUnit == 0, "frames follow the header");

  struct Class {
    size_t stride = 0;
    size_t next_size = 0;   // frames of the next slab
    Slab* room = nullptr;   // the first slab with room
    Slab* spare = nullptr;  // had no frame when it was last looked at, and was kept for the next one
    std::vector<Slab*> slabs;
  };

  static Slab* SlabOf(Frame* frame);
  Slab* Grow(Class* of);
  void Link(Slab* slab);
  void Unlink(Slab* slab);
  void GiveBack(Slab* slab);
  void Free(Slab* slab);

  std::atomic<int64_t>* const bytes_;
  std::vector<Class> classes_;  // by Region::id
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_FRAME_H_
