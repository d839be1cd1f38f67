// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/spare_threads.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tensorflow/core/platform/env.h"

namespace tensorflow_recursion {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

class SpareThreads {
 public:
  void Run(std::function<void()> work) {
    {
      absl::MutexLock lock(&mutex_);
      if (!idle_.empty()) {
        idle_.back()->work = std::move(work);
        idle_.pop_back();
        return;
      }
    }
    tensorflow::Env::Default()->SchedClosure([this, work = std::move(work)]() mutable { Serve(std::move(work)); });
  }

 private:
  struct Seat {
    std::function<void()> work;
    bool HasWork() const { return work != nullptr; }
  };

  void Serve(std::function<void()> work) {
    while (work != nullptr) {
      work();
      work = nullptr;  // with what it holds
      Seat seat;
      absl::MutexLock lock(&mutex_);
      idle_.push_back(&seat);
      mutex_.AwaitWithTimeout(absl::Condition(&seat, &Seat::HasWork), kPatience);
      if (!seat.HasWork()) idle_.erase(std::find(idle_.begin(), idle_.end(), &seat));
      work = std::move(seat.work);
    }
  }

  absl::Mutex mutex_;
  std::vector<Seat*> idle_ ABSL_GUARDED_BY(mutex_);  // the last to come is the first to go
};

}  // namespace

void RunOnSpareThread(std::function<void()> work) {
  static auto* const threads = new SpareThreads;  // never destroyed: its threads may outlive everything else
  threads->Run(std::move(work));
}

}  // namespace tensorflow_recursion
