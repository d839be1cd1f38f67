// Holds what all workers of one run share: its environment, its first error, its results, and what is under way.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_RUN_STATE_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_RUN_STATE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cc/executor/frame.h"
#include "cc/executor/memory_watch.h"
#include "cc/executor/run_program.h"

namespace tensorflow_recursion {

class Interpreter;

// Thread-safe, except for `retvals`.
class RunState {
 public:
  // `end` is called when the last activity ends, and may delete *this.
  RunState(RunEnvironment environment, std::function<void()> end);

  // An activity is a thread inside a worker, or a kernel in flight. The run is over when none is left: every frame has
  // then ended, or an error has stopped the workers.
  void BeginActivity() { activities_.fetch_add(1, std::memory_order_relaxed); }
  void EndActivity() {
    // Release and acquire, so that whoever ends the run sees what all workers have written.
    if (activities_.fetch_sub(1, std::memory_order_acq_rel) == 1) End();
  }

  // A worker that has nothing to do looks out for messages as long as another one is busy. If all workers only look
  // out, nobody is busy, and the run is over. Relaxed, because a worker may well look once more than it had to.
  void BeginLookOut() { lookouts_.fetch_add(1, std::memory_order_relaxed); }
  void EndLookOut() { lookouts_.fetch_sub(1, std::memory_order_relaxed); }
  bool others_are_busy() const {
    return activities_.load(std::memory_order_relaxed) > lookouts_.load(std::memory_order_relaxed);
  }

  // Ends the run with an error, unless another one came first. Workers see it when they look up the next time.
  void Fail(const absl::Status& status);
  // The same, but names in the message the path of calls that led to `frame`, and the compiled calls that `compiled` is
  // running below it.
  void FailAt(const absl::Status& status, const Frame* frame, const Interpreter* compiled = nullptr);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  absl::Status status() const;

  // To be called before and after a worker's kernel runs on a thread of its own. Begin returns false if there are as
  // many such kernels as the run may have further workers. If there were more, frames that wait for them would pile up.
  bool BeginOffload();
  void EndOffload() { offloads_.fetch_sub(1, std::memory_order_relaxed); }

  // Looks how much memory there is, and sets max_frame_bytes. All workers call this often, and one of them looks when
  // it is time. The first look comes an interval after the first call. `now` is the time of a steady clock.
  void WatchMemory(absl::Duration now);
  // Whether calls go no deeper because there is too little memory; and the least that was available at a look.
  bool is_out_of_memory() const { return max_frame_bytes.load(std::memory_order_relaxed) == kNoFrameBytes; }
  int64_t least_memory() const;

  const RunEnvironment environment;
  // From this time on calls go to other workers.
  const absl::Time help_begins;
  // The owner of the root frame writes these.
  std::vector<Value> retvals;
  // How many outputs the kernel with the most has.
  size_t max_outputs = 0;
  // How much memory frames take, and kernels in flight without their tensors; and the limit of that. Relaxed, because
  // they are only compared.
  std::atomic<int64_t> frame_bytes{0};
  std::atomic<int64_t> max_frame_bytes{0};

 private:
  // A limit that every run is above.
  static constexpr int64_t kNoFrameBytes = -1;

  void End();

  const int64_t usual_max_frame_bytes_;
  // When it is time to look at the memory again, in nanoseconds; 0 before the first call of WatchMemory.
  std::atomic<int64_t> next_look_{0};
  // Needed because another worker may begin the next look before this one has ended.
  mutable std::mutex watch_mutex_;
  MemoryWatch watch_ ABSL_GUARDED_BY(watch_mutex_);
  const std::function<void()> end_;
  std::atomic<int> activities_{0};
  std::atomic<int> lookouts_{0};
  std::atomic<bool> failed_{false};
  std::atomic<int> offloads_{0};
  // Needed because several workers may fail at once.
  mutable std::mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_RUN_STATE_H_
