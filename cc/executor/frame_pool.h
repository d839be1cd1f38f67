// The memory that a worker's frames lie in.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_FRAME_POOL_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_FRAME_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cc/executor/frame.h"
#include "cc/program/program.h"
#include "cc/values/slabs.h"

namespace tensorflow_recursion {

// Frames of one region have one size and lie in slabs of their own. With malloc instead, repeated runs would take twice
// the resident memory. The pool also finds by its slabs every frame that still lives when a run is abandoned. A slab
// without a frame is soon given back, so that its memory serves frames of other regions, or records.
class FramePool {
 public:
  // `bytes` counts the slabs of all pools of a run. It is relaxed, because it is only compared with a limit.
  FramePool(const Program& program, std::atomic<int64_t>* bytes);
  ~FramePool();  // releases the tensors of frames that still live

  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  // A copy of the region's template; of the header only `region` and the flags are set.
  Frame* New(const Region& region);
  void Delete(Frame* frame);

 private:
  struct RegionSlabs;
  // What stands at the beginning of a slab, before its frames.
  struct Slab {
    RegionSlabs* owner;
    Frame* free;
    unsigned char* fresh;  // no frame has been in the memory from here on
    uint32_t size;         // in frames
    uint32_t live;         // frames
    Slab* next;            // in the list of slabs with room
    Slab* previous;
    uint32_t index;  // in RegionSlabs::slabs
    size_t bytes;

    unsigned char* frames() { return reinterpret_cast<unsigned char*>(this + 1); }
    bool is_shared() const { return bytes == kSlabBytes; }  // comes from TakeSlab()
  };
  static_assert(sizeof(Slab) % kFrameUnit == 0, "frames follow the header");

  // All frames of one region.
  struct RegionSlabs {
    size_t stride = 0;
    size_t next_size = 0;   // frames of the next slab
    Slab* room = nullptr;   // the first slab with room
    Slab* spare = nullptr;  // had no frame when it was last looked at, and was kept for the next one
    std::vector<Slab*> slabs;
  };

  static Slab* SlabOf(Frame* frame);
  Slab* Grow(RegionSlabs* owner);
  void Link(Slab* slab);
  void Unlink(Slab* slab);
  void GiveBack(Slab* slab);
  void Free(Slab* slab);

  std::atomic<int64_t>* const bytes_;
  std::vector<RegionSlabs> slabs_of_;  // by Region::id
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_FRAME_POOL_H_
