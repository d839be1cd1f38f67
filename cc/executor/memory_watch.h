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

// Is given what one run finds available, look after look, of which the first is what the run is compared with.
class MemoryWatch {
 public:
  explicit MemoryWatch(int64_t reserve) : reserve_(reserve) {}

  // Whether the run should go no deeper: less is left than the reserve, less than at any look before, and so much less
  // than at the first that it has grown. What unwinds, and frees memory as it does, goes on.
  bool IsTooLarge(int64_t available) {
    if (available == kUnknownMemory) return false;
    if (first_ == kUnknownMemory) first_ = least_ = available;
    const bool is_least = available < least_;
    least_ = std::min(least_, available);
    return is_least && available < reserve_ && first_ - available >= std::min(kSmallestGrowth, first_ / kSmallestPart);
  }

  int64_t least() const { return least_; }  // that was available

 private:
  int64_t reserve_;
  int64_t first_ = kUnknownMemory;
  int64_t least_ = kUnknownMemory;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_MEMORY_WATCH_H_
