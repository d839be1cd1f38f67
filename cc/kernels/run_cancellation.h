// Cancels the kernels of one run when the step that the run belongs to is cancelled.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_RUN_CANCELLATION_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_RUN_CANCELLATION_H_

#include <functional>
#include <memory>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "tensorflow/core/framework/cancellation.h"

namespace tensorflow_recursion {

// The run's own cancellation, for its kernels. When the step is cancelled, this is started on another thread: to cancel
// thousands of receives takes a while, and a gRPC master cancels a step on the thread that takes the requests of the
// next one. May be used by many threads at a time.
class RunCancellation {
 public:
  // `step` may be null: the run then is never cancelled. It must live until `End` has called what it is given.
  static std::shared_ptr<RunCancellation> Of(tensorflow::CancellationManager* step);

  bool IsCancelled() { return manager_.IsCancelled() || (step_ != nullptr && step_->IsCancelled()); }

  // To be called once, when nothing of the run is in flight any more. Calls `then`; if the kernels are still being
  // cancelled, that is after the last of them has been told. A queue, for example, ends the kernel that waits for it
  // and then reads its own memory once more, which may go when the step has ended.
  void End(std::function<void()> then);

  tensorflow::CancellationManager* manager() { return &manager_; }

 private:
  explicit RunCancellation(tensorflow::CancellationManager* step) : step_(step) {}

  void Start();

  tensorflow::CancellationManager* const step_;
  tensorflow::CancellationToken token_ = 0;
  tensorflow::CancellationManager manager_;

  // `Start` runs on a spare thread, `End` on whichever thread ends the run, also on that of `Start`.
  std::mutex mutex_;
  bool is_starting_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> then_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_RUN_CANCELLATION_H_
