// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/frame_pool.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "absl/base/optimization.h"
#include "cc/values/block_pool.h"

namespace tensorflow_recursion {
namespace {

// How many frames the first slab of a region has room for. A run of a few calls should not pay for more. A deep one
// does not allocate often, because slabs double.
constexpr size_t kFirstSlabFrames = 8;

void ReleaseValues(Frame* frame) {
  Value* values = frame->values();
  for (uint32_t i = 0; i < frame->region->num_slots; ++i) values[i].Release();
}

}  // namespace

FramePool::FramePool(const Program& program, std::atomic<int64_t>* bytes)
    : bytes_(bytes), slabs_of_(program.regions.size()) {
  for (const Region& region : program.regions) {
    RegionSlabs& owner = slabs_of_[region.id];
    owner.stride = (sizeof(Frame) + region.frame_template.size() + kFrameUnit - 1) / kFrameUnit * kFrameUnit;
    owner.next_size = kFirstSlabFrames;
  }
}

FramePool::~FramePool() {
  for (RegionSlabs& owner : slabs_of_) {
    for (Slab* slab : owner.slabs) {
      for (unsigned char* at = slab->frames(); slab->live > 0 && at != slab->fresh; at += owner.stride) {
        auto* frame = reinterpret_cast<Frame*>(at);
        if (frame->region != nullptr && frame->owns_tensors) ReleaseValues(frame);
      }
      Free(slab);
    }
  }
}

inline FramePool::Slab* FramePool::SlabOf(Frame* frame) {
  auto* at = reinterpret_cast<unsigned char*>(frame);
  return reinterpret_cast<Slab*>(at - frame->slab_offset * kFrameUnit) - 1;
}

// Each slab is twice as large as the one before, up to the size of slabs that everybody shares.
FramePool::Slab* FramePool::Grow(RegionSlabs* owner) {
  size_t bytes = sizeof(Slab) + owner->next_size * owner->stride;
  const size_t most = (kSlabBytes - sizeof(Slab)) / owner->stride;
  if (bytes > kSlabBytes / 2 && most > 0) bytes = kSlabBytes;
  if (most == 0) bytes = sizeof(Slab) + owner->stride;  // a single frame is larger than a shared slab
  unsigned char* memory = bytes == kSlabBytes ? TakeSlab() : static_cast<unsigned char*>(TakeBlock(bytes));
  auto* slab = new (memory) Slab;
  slab->owner = owner;
  slab->free = nullptr;
  slab->fresh = slab->frames();
  slab->size = static_cast<uint32_t>((bytes - sizeof(Slab)) / owner->stride);
  slab->live = 0;
  slab->bytes = bytes;
  slab->index = static_cast<uint32_t>(owner->slabs.size());
  owner->slabs.push_back(slab);
  if (bytes < kSlabBytes) owner->next_size *= 2;
  bytes_->fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  Link(slab);
  return slab;
}

inline void FramePool::Link(Slab* slab) {
  slab->previous = nullptr;
  slab->next = slab->owner->room;
  if (slab->next != nullptr) slab->next->previous = slab;
  slab->owner->room = slab;
}

inline void FramePool::Unlink(Slab* slab) {
  if (slab->previous != nullptr) slab->previous->next = slab->next;
  if (slab->next != nullptr) slab->next->previous = slab->previous;
  if (slab->owner->room == slab) slab->owner->room = slab->next;
}

// Gives a slab back when its last frame has ended. But one such slab of each region is kept, because a recursion that
// goes up and down would otherwise take and return one each time. Small slabs are kept as well.
void FramePool::GiveBack(Slab* slab) {
  RegionSlabs& owner = *slab->owner;
  if (!slab->is_shared()) return;
  if (owner.spare == nullptr || owner.spare == slab || owner.spare->live > 0) {
    owner.spare = slab;
    return;
  }
  Unlink(slab);
  owner.slabs[slab->index] = owner.slabs.back();
  owner.slabs[slab->index]->index = slab->index;
  owner.slabs.pop_back();
  bytes_->fetch_sub(static_cast<int64_t>(slab->bytes), std::memory_order_relaxed);
  Free(slab);
}

void FramePool::Free(Slab* slab) {
  auto* memory = reinterpret_cast<unsigned char*>(slab);
  if (slab->is_shared()) return GiveSlab(memory);
  GiveBlock(memory, slab->bytes);
}

Frame* FramePool::New(const Region& region) {
  RegionSlabs& owner = slabs_of_[region.id];
  Slab* slab = owner.room;
  if (ABSL_PREDICT_FALSE(slab == nullptr)) slab = Grow(&owner);
  Frame* frame = slab->free;
  if (ABSL_PREDICT_TRUE(frame != nullptr)) {
    slab->free = frame->parent;
  } else {
    frame = reinterpret_cast<Frame*>(slab->fresh);
    // This fits into its bits, because a slab that is larger than kSlabBytes holds a single frame, for which it is 0.
    frame->slab_offset = static_cast<uint16_t>((slab->fresh - slab->frames()) / kFrameUnit);
    slab->fresh += owner.stride;
  }
  if (ABSL_PREDICT_FALSE(++slab->live == slab->size)) Unlink(slab);
  frame->region = &region;
  frame->incomplete_sites = 0;
  frame->owns_tensors = 0;
  frame->has_partial_calls = 0;
  std::memcpy(static_cast<void*>(frame->values()), region.frame_template.data(), region.frame_template.size());
  return frame;
}

void FramePool::Delete(Frame* frame) {
  if (frame->owns_tensors) ReleaseValues(frame);
  Slab* slab = SlabOf(frame);
  frame->region = nullptr;
  frame->parent = slab->free;
  slab->free = frame;
  if (ABSL_PREDICT_FALSE(slab->live == slab->size)) Link(slab);
  if (ABSL_PREDICT_FALSE(--slab->live == 0)) GiveBack(slab);
}

}  // namespace tensorflow_recursion
