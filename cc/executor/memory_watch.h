// Tells a run that is about to take all memory of the machine from one that merely runs while there is little.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_MEMORY_WATCH_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_MEMORY_WATCH_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "cc/base/available_memory.h"

namespace tensorflow_recursion {

// Who says how much memory there is, and how often a run asks.
struct MemoryGauge {
  int64_t (*available)() = &AvailableMemory;  // bytes, or kUnknownMemory
  int64_t reserve = MemoryReserve();          // below this a run goes no deeper; 0: nobody asks
  absl::Duration interval = absl::Milliseconds(50);
  absl::Duration near_interval = absl::Milliseconds(5);  // the same while less than twice the reserve is available
};

// A run takes less than this while others take the rest: it is not what exhausts the machine.
inline constexpr int64_t kSmallestGrowth = int64_t{64} << 20;
// Nor does it where it takes less than this part of the little that there is. TensorFlow's allocator keeps what one run
// has taken for the next ones, so that each of many that are stopped begins with less.
inline constexpr int64_t kSmallestPart = 4;
// A run that is too large, and opens no call by which it would end, may take so much more, or half of what is left.
inline constexpr int64_t kLargestOverdraft = int64_t{256} << 20;

// Is given what one run finds available, look after look, of which the first is what the run is compared with.
class MemoryWatch {
 public:
  explicit MemoryWatch(int64_t reserve) : reserve_(reserve) {}

  // Whether the run should go no deeper: less is left than the reserve, no more than at any look before, and so much
  // less than at the first that it has grown. What unwinds, and frees memory as it does, goes on. Where two looks find
  // the same, nothing was freed: a call on large tensors may come only after the second.
  bool IsTooLarge(int64_t available) {
    if (available == kUnknownMemory) return false;
    if (first_ == kUnknownMemory) first_ = least_ = available;
    const bool is_least = available <= least_;
    least_ = std::min(least_, available);
    const bool has_grown = first_ - available >= std::min(kSmallestGrowth, first_ / kSmallestPart);
    const bool is_too_large = is_least && available < reserve_ && has_grown;
    if (is_too_large && left_ == kUnknownMemory) left_ = available;
    return is_too_large;
  }

  // Whether a run that is too large should end wherever it is. Calls can be opened before all their arguments are
  // there: then the run takes its memory when the last one is opened already.
  bool MustEnd() const { return left_ != kUnknownMemory && least_ < left_ - std::min(kLargestOverdraft, left_ / 2); }

  int64_t least() const { return least_; }  // that was available

 private:
  int64_t reserve_;
  int64_t first_ = kUnknownMemory;
  int64_t least_ = kUnknownMemory;
  int64_t left_ = kUnknownMemory;  // when it was too large for the first time
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_MEMORY_WATCH_H_
