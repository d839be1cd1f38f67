// Knows which workers of a run have nothing to do.
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
  // `num_unmade` is how many workers the run may still make. They count as idle.
  explicit IdleWorkers(int num_unmade) : num_idle_(num_unmade) {}

  // Whether some worker may be idle. It is a hint, by which busy workers learn without a lock that nobody waits.
  bool MayHaveAny() const { return num_idle_.load(std::memory_order_relaxed) > 0; }

  void Add(Worker* worker) {
    std::lock_guard<std::mutex> lock(mutex_);
    workers_.push_back(worker);
    num_idle_.fetch_add(1, std::memory_order_relaxed);
  }

  // Takes the worker out that was added last, and returns it; nullptr if there is none.
  Worker* Take() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (workers_.empty()) return nullptr;
    Worker* const worker = workers_.back();
    workers_.pop_back();
    num_idle_.fetch_sub(1, std::memory_order_relaxed);
    return worker;
  }

  // To be called when a further worker has been made: it counts as idle no longer.
  void NoteMade() { num_idle_.fetch_sub(1, std::memory_order_relaxed); }

  // To be called by a worker that has something to do. It has no effect if the worker was taken already.
  void Leave(Worker* worker) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto position = std::find(workers_.begin(), workers_.end(), worker);
    if (position == workers_.end()) return;
    workers_.erase(position);
    num_idle_.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  std::atomic<int> num_idle_;
  // Needed because any worker may take another.
  std::mutex mutex_;
  std::vector<Worker*> workers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_IDLE_WORKERS_H_
