// Which workers of a run have nothing to do.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_IDLE_WORKERS_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_IDLE_WORKERS_H_

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "absl/base/thread_annotations.h"

namespace tensorflow_recursion {

class Worker;

// Thread-safe.
class IdleWorkers {
 public:
  // `num_unmade`: how many workers the run may still make, which count as idle.
  explicit IdleWorkers(int num_unmade) : num_idle_(num_unmade) {}

  // A hint, so that busy workers need not lock to learn that nobody waits.
  bool MayHaveAny() const { return num_idle_.load(std::memory_order_relaxed) > 0; }

  void Add(Worker* worker) {
    std::lock_guard<std::mutex> lock(mutex_);
    workers_.push_back(worker);
    num_idle_.fetch_add(1, std::memory_order_relaxed);
  }

  // The last to have been added; nullptr if there is none.
  Worker* Take() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (workers_.empty()) return nullptr;
    Worker* const worker = workers_.back();
    workers_.pop_back();
    num_idle_.fetch_sub(1, std::memory_order_relaxed);
    return worker;
  }

  // One that was not made yet is not idle any more.
  void NoteMade() { num_idle_.fetch_sub(1, std::memory_order_relaxed); }

  // The worker has something to do. No effect if it was taken already.
  void Leave(Worker* worker) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto position = std::find(workers_.begin(), workers_.end(), worker);
    if (position == workers_.end()) return;
    workers_.erase(position);
    num_idle_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  std::atomic<int> num_idle_;
  std::mutex mutex_;  // any worker may take another
  std::vector<Worker*> workers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_IDLE_WORKERS_H_
