// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/spare_threads.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "tensorflow/core/platform/env.h"

namespace tensorflow_recursion {
namespace {

// How long an idle thread waits for more work before it ends.
constexpr std::chrono::seconds kPatience(10);

// Keeps the threads that are idle. Each waits in a Seat for its next work.
class SpareThreads {
 public:
  void Run(std::function<void()> work) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!idle_.empty()) {
        idle_.back()->work = std::move(work);
        idle_.back()->work_came.notify_one();
        idle_.pop_back();
        return;
      }
    }
    tensorflow::Env::Default()->SchedClosure([this, work = std::move(work)]() mutable { Serve(std::move(work)); });
  }

 private:
  // Where an idle thread waits. Run() puts its next work here.
  struct Seat {
    std::function<void()> work;
    std::condition_variable work_came;
  };

  void Serve(std::function<void()> work) {
    while (work != nullptr) {
      work();
      work = nullptr;  // releases what the closure holds
      Seat seat;
      std::unique_lock<std::mutex> lock(mutex_);
      idle_.push_back(&seat);
      const bool has_work = seat.work_came.wait_for(lock, kPatience, [&seat] { return seat.work != nullptr; });
      if (!has_work) idle_.erase(std::find(idle_.begin(), idle_.end(), &seat));
      work = std::move(seat.work);
    }
  }

  std::mutex mutex_;
  // The thread that became idle last gets work first.
  std::vector<Seat*> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

void RunOnSpareThread(std::function<void()> work) {
  static auto* const threads = new SpareThreads;  // is never destroyed, because its threads may outlive all else
  threads->Run(std::move(work));
}

}  // namespace tensorflow_recursion
