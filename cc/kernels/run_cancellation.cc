// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/run_cancellation.h"

#include <mutex>
#include <utility>

#include "cc/kernels/spare_threads.h"

namespace tensorflow_recursion {

std::shared_ptr<RunCancellation> RunCancellation::Of(tensorflow::CancellationManager* step) {
  std::shared_ptr<RunCancellation> run(new RunCancellation(step));
  if (step == nullptr) return run;
  run->token_ = step->get_cancellation_token();
  auto start = [run] { RunOnSpareThread([run] { run->Start(); }); };
  if (!step->RegisterCallback(run->token_, start)) run->manager_.StartCancel();
  return run;
}

void RunCancellation::Start() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (has_ended_) return;
    is_starting_ = true;
  }
  manager_.StartCancel();
  std::function<void()> then;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_starting_ = false;
    then = std::move(then_);
  }
  if (then != nullptr) then();
}

void RunCancellation::End(std::function<void()> then) {
  if (step_ != nullptr) step_->TryDeregisterCallback(token_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    has_ended_ = true;
    if (is_starting_) {
      then_ = std::move(then);
      return;
    }
  }
  then();
}

}  // namespace tensorflow_recursion
