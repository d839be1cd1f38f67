// Gives a worker's frames the memory that they lie in.
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
  // Releases the tensors of frames that still live.
  ~FramePool();

  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  // Returns a frame with slots and counts as in the region's template. Of its header, only `region`, the number of
  // incomplete sites and the flags are set.
  Frame* New(const Region& region);
  void Delete(Frame* frame);

 private:
  struct RegionSlabs;
  // What stands at the beginning of a slab, before its frames.
  struct Slab {
    RegionSlabs* owner;
    // The first of the frames that have ended; each names the next one.
    Frame* free;
    // From here on no frame has been in the memory.
    unsigned char* fresh;
    // How many frames there is room for, and how many live.
    uint32_t size;
    uint32_t live;
    // The neighbours in the list of slabs with room.
    Slab* next;
    Slab* previous;
    // Where the slab is in RegionSlabs::slabs.
    uint32_t index;
    size_t bytes;

    unsigned char* frames() { return reinterpret_cast<unsigned char*>(this + 1); }
    // Whether the memory comes from TakeSlab().
    bool is_shared() const { return bytes == kSlabBytes; }
  };
  static_assert(sizeof(Slab) % kFrameUnit == 0, "frames follow the header");

  // All frames of one region.
  struct RegionSlabs {
    // How many bytes a frame takes.
    size_t stride = 0;
    // How many frames the next slab will have room for.
    size_t next_size = 0;
    // The first slab with room.
    Slab* room = nullptr;
    // The slab that had no frame when it was last looked at, and was kept for the next frame.
    Slab* spare = nullptr;
    std::vector<Slab*> slabs;
  };

  static Slab* SlabOf(Frame* frame);
  Slab* Grow(RegionSlabs* owner);
  void Link(Slab* slab);
  void Unlink(Slab* slab);
  void GiveBack(Slab* slab);
  void Free(Slab* slab);

  std::atomic<int64_t>* const bytes_;
  // By Region::id.
  std::vector<RegionSlabs> slabs_of_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_FRAME_POOL_H_
