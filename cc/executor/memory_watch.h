// Tells a run that is about to take all memory of the machine from one that merely runs while there is little.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_MEMORY_WATCH_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_MEMORY_WATCH_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "cc/base/available_memory.h"

namespace tensorflow_recursion {

// How a run learns how much memory there is.
struct MemoryGauge {
  // Returns how many bytes are available, or kUnknownMemory.
  int64_t (*available)() = &AvailableMemory;
  // With less than this available, a run that has grown goes no deeper. If it is 0, the run does not ask at all.
  int64_t reserve = MemoryReserve();
  // How often the run asks, usually and while less than twice the reserve is available.
  absl::Duration interval = absl::Milliseconds(50);
  absl::Duration near_interval = absl::Milliseconds(5);
};

// A run has grown when it has taken so much. One that has taken less is not what exhausts the machine.
inline constexpr int64_t kSmallestGrowth = int64_t{64} << 20;
// If a run began with little, it has grown when it has taken a quarter of that. TensorFlow's allocator keeps what one
// run has taken for the next ones, so that each of many that are stopped begins with less.
inline constexpr int64_t kSmallestPart = 4;
// A run that is too large ends at its next call. If it opens none, it ends when it has taken so much more, or half of
// what was left if that is less.
inline constexpr int64_t kLargestOverdraft = int64_t{256} << 20;

// Is told at each look of a run how much memory is available. The first look says what the run began with.
class MemoryWatch {
 public:
  explicit MemoryWatch(int64_t reserve) : reserve_(reserve) {}

  // Whether the run should go no deeper. Three things must be true: less memory is left than the reserve, much less
  // than at the first look, and no more than at any look before. So a run that unwinds, and frees memory as it does,
  // goes on. Two looks may find the same, because a call on large tensors may be opened only after the second.
  bool IsTooLarge(int64_t available) {
    if (available == kUnknownMemory) return false;
    if (first_ == kUnknownMemory) first_ = least_ = available;
    const bool is_least = available <= least_;
    least_ = std::min(least_, available);
    const bool has_grown = first_ - available >= std::min(kSmallestGrowth, first_ / kSmallestPart);
    const bool is_too_large = is_least && available < reserve_ && has_grown;
    if (is_too_large && left_when_too_large_ == kUnknownMemory) left_when_too_large_ = available;
    return is_too_large;
  }

  // Whether a run that is too large should end wherever it is. Calls can be opened before all their arguments are
  // there: then the run takes its memory when the last one is opened already.
  bool MustEnd() const {
    return left_when_too_large_ != kUnknownMemory &&
           least_ < left_when_too_large_ - std::min(kLargestOverdraft, left_when_too_large_ / 2);
  }

  // The least that was available at any look.
  int64_t least() const { return least_; }

 private:
  int64_t reserve_;
  int64_t first_ = kUnknownMemory;
  int64_t least_ = kUnknownMemory;
  // What was left when the run was too large for the first time.
  int64_t left_when_too_large_ = kUnknownMemory;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_MEMORY_WATCH_H_
