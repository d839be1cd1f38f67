// What all workers of one run share: its environment, its first error, its results, and what is under way.
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

// Thread-safe, but for `retvals`.
class RunState {
 public:
  // `end` is called when the last activity ends, and may delete *this.
  RunState(RunEnvironment environment, std::function<void()> end);

  // An activity is a thread inside a worker, or a kernel in flight. The run is over when none is left: every frame has
  // then ended, or an error has stopped the workers.
  void BeginActivity() { activities_.fetch_add(1, std::memory_order_relaxed); }
  void EndActivity() {
    // Release and acquire: whoever ends the run sees what all workers wrote.
    if (activities_.fetch_sub(1, std::memory_order_acq_rel) == 1) End();
  }

  // A worker looks out when it has nothing to do but may soon have, because another one is busy. If all workers only
  // look out, the run is over. Relaxed: a worker may look once more than it had to.
  void BeginLookOut() { lookouts_.fetch_add(1, std::memory_order_relaxed); }
  void EndLookOut() { lookouts_.fetch_sub(1, std::memory_order_relaxed); }
  bool others_are_busy() const {
    return activities_.load(std::memory_order_relaxed) > lookouts_.load(std::memory_order_relaxed);
  }

  // The first error wins; workers see it when they look up the next time.
  void Fail(const absl::Status& status);
  // The same, with the calls that led to `frame` in the message, and with those that `compiled` is in, called there.
  void FailAt(const absl::Status& status, const Frame* frame, const Interpreter* compiled = nullptr);
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  absl::Status status() const;

  // Kernels that workers have handed to threads of their own. There may be as many as workers would be idle otherwise:
  // with more, frames that wait for them would pile up.
  bool BeginOffload();
  void EndOffload() { offloads_.fetch_sub(1, std::memory_order_relaxed); }

  // Looks how much memory there is if it is time, in one worker of those that ask, and sets max_frame_bytes. `now` is
  // of a steady clock. The first look comes an interval after it was asked for first.
  void WatchMemory(absl::Duration now);
  // Whether calls go no deeper because of it; least_memory() is what was left then.
  bool is_out_of_memory() const { return max_frame_bytes.load(std::memory_order_relaxed) == kNoFrameBytes; }
  int64_t least_memory() const;

  const RunEnvironment environment;
  const absl::Time help_begins;  // from here on calls go to other workers
  std::vector<Value> retvals;    // written by the owner of the root frame
  size_t max_outputs = 0;        // of a kernel
  // Memory of frames, and of kernels in flight apart from their tensors, and its limit. Relaxed: they are only
  // compared.
  std::atomic<int64_t> frame_bytes{0};
  std::atomic<int64_t> max_frame_bytes{0};

 private:
  static constexpr int64_t kNoFrameBytes = -1;  // less than any number of bytes

  void End();

  const int64_t usual_max_frame_bytes_;
  std::atomic<int64_t> next_look_{0};  // in nanoseconds; 0: nobody has asked yet
  mutable std::mutex watch_mutex_;     // a look may take longer than the time to the next
  MemoryWatch watch_ ABSL_GUARDED_BY(watch_mutex_);
  const std::function<void()> end_;
  std::atomic<int> activities_{0};
  std::atomic<int> lookouts_{0};
  std::atomic<bool> failed_{false};
  std::atomic<int> offloads_{0};
  mutable std::mutex mutex_;  // several workers may fail at once
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_RUN_STATE_H_
