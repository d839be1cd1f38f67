// Counts the kernels of a worker's frames that are in flight, and keeps their memory.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_FLIGHTS_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_FLIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cc/executor/inbox.h"

namespace tensorflow_recursion {

// A flight begins when a kernel is started or sent to another thread, and ends when the worker learns that the kernel
// is done. In the main graph several kernels may be one flight (KernelInFlight::next).
//
// Not thread-safe: it is the worker's own.
class Flights {
 public:
  static constexpr int64_t kFirstLimit = 256;

  void Begin(KernelInFlight::Way way) { ++NumOf(way); }
  void End(KernelInFlight::Way way) { --NumOf(way); }

  int64_t count() const { return num_others_ + num_spread_; }

  // Whether the worker should wait a little before it opens a further call. Most of the kernels in flight are receives,
  // and other devices take longer to answer than calls take to open. Without a wait, a recursion that goes back and
  // forth between devices would be unrolled in full breadth before the first answer comes. Kernels that are spread over
  // threads do not count, because they answer as soon as they have computed.
  bool are_many() const { return num_others_ >= limit_; }
  // From now on twice as many are allowed. To be called when no answer comes: the other device may wait for calls that
  // are not open yet, as in a deep recursion.
  void AllowMore() { limit_ = 2 * num_others_; }

  // A kernel without inputs, in the memory of one that has landed if there is such memory.
  std::unique_ptr<KernelInFlight> NewKernel() {
    if (spare_.empty()) return std::make_unique<KernelInFlight>();
    std::unique_ptr<KernelInFlight> kernel = std::move(spare_.back());
    spare_.pop_back();
    return kernel;
  }
  // Keeps the memory of a kernel that has landed, and returns the kernel that follows it in its flight.
  std::unique_ptr<KernelInFlight> Recycle(std::unique_ptr<KernelInFlight> kernel) {
    std::unique_ptr<KernelInFlight> next = std::move(kernel->next);
    if (spare_.size() == kMostSpare) return next;
    kernel->Clear();
    spare_.push_back(std::move(kernel));
    return next;
  }

 private:
  static constexpr size_t kMostSpare = 64;

  int64_t& NumOf(KernelInFlight::Way way) { return way == KernelInFlight::Way::kSpread ? num_spread_ : num_others_; }

  int64_t num_spread_ = 0;
  int64_t num_others_ = 0;
  int64_t limit_ = kFirstLimit;
  std::vector<std::unique_ptr<KernelInFlight>> spare_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_FLIGHTS_H_
