// Names frames in the keys of what devices send to one another. Every device computes the same names by itself.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_FRAME_TAG_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_FRAME_TAG_H_

#include <cstdint>

#include "tensorflow/core/platform/hash.h"

namespace tensorflow_recursion {

// What TensorFlow puts into rendezvous keys: the id of a frame and the iteration in it. The root has (0, 0).
//
// For calls, and for loops inside of bodies, both numbers together are a hash of 128 bits. Keys meet only within a
// step: with 2^40 of its frames alive at once, far more than memory holds, two are mistaken for each other with
// probability 2^-49.
struct FrameTag {
  uint64_t id = 0;
  int64_t iteration = 0;
};

// The frame that call `key`, or iteration `iteration` of the loop with key `key`, opens in frame `parent`.
inline FrameTag ChildTag(const FrameTag& parent, uint64_t key, int64_t iteration = 0) {
  const uint64_t path[] = {parent.id, static_cast<uint64_t>(parent.iteration), key, static_cast<uint64_t>(iteration)};
  const char* const bytes = reinterpret_cast<const char*>(path);
  constexpr uint64_t kSeeds[] = {0x9ae16a3b2f90404fULL, 0xc3a5c85c97cb3127ULL};
  return {tensorflow::Hash64(bytes, sizeof(path), kSeeds[0]),
          static_cast<int64_t>(tensorflow::Hash64(bytes, sizeof(path), kSeeds[1]))};
}

// The same for a loop of the main graph. TensorFlow's own executor runs partitions without calls, so this is computed
// as TensorFlow computes it.
inline FrameTag MainLoopTag(const FrameTag& parent, uint64_t name_hash, int64_t iteration) {
  return {tensorflow::Hash64Combine(parent.id,
                                    tensorflow::Hash64Combine(static_cast<uint64_t>(parent.iteration), name_hash)),
          iteration};
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_FRAME_TAG_H_
