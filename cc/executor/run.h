// What the workers of one run share: activities, the first error, who is idle.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_RUN_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_RUN_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "cc/executor/scheduler.h"
#include "cc/executor/worker.h"

namespace tensorflow_recursion {

// Deletes itself when its last activity ends.
class [[gnu::visibility("hidden")]] Run {
 public:
  Run(RunEnvironment environment, RunDone done);

  void Start(std::vector<Value> arguments);

  // An activity is a thread inside a worker, or a kernel in flight. The run is over when none is left:
  // every frame has then ended, or an error has stopped the workers.
  void BeginActivity() { activities_.fetch_add(1, std::memory_order_relaxed); }
  void EndActivity() {
    // Release and acquire: whoever ends the run sees what all workers wrote.
    if (activities_.fetch_sub(1, std::memory_order_acq_rel) == 1) Finish();
  }

  // The first error wins; workers see it at their next step.
  void Fail(const absl::Status& status);
  // The same, with the calls that led to `frame` in the message.
  void FailAt(const absl::Status& status, const Frame* frame);
  bool failed() const { return failed_.load(std::memory_order_acquire); }

  bool MaySpread() const { return environment.max_workers > 1; }
  bool HasIdleWorker() const { return idle_.load(std::memory_order_relaxed) > 0; }
  // Kernels on threads of their own; as many as would be idle otherwise, or frames would pile up.
  bool BeginOffload() {
    if (offloads_.fetch_add(1, std::memory_order_relaxed) < environment.max_workers - 1) return true;
    EndOffload();
    return false;
  }
  void EndOffload() { offloads_.fetch_sub(1, std::memory_order_relaxed); }

  Worker* TakeIdleWorker();
  void ReturnIdleWorker(Worker* worker);
  void LeaveIdle(Worker* worker);  // no effect if it was taken already

  const RunEnvironment environment;
  std::vector<Value> retvals;  // written by the owner of the root frame
  size_t max_outputs = 0;
  std::atomic<int64_t> frame_bytes{0};
  const int64_t max_frame_bytes;

 private:
  void Finish();

  RunDone done_;
  std::atomic<int> activities_{0};
  std::atomic<bool> failed_{false};
  std::atomic<int> offloads_{0};
  std::atomic<int> idle_{0};  // a hint, so that busy workers need not lock to learn that nobody waits
  absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Worker>> workers_ ABSL_GUARDED_BY(mutex_);
  std::vector<Worker*> idle_workers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_RUN_H_
