// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/flat_stack.h"

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cc/base/names.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/unbounded_work_queue.h"

namespace tensorflow_recursion {
namespace {

// How large stacks are taken to be where the system does not tell: as those of the smallest pool threads.
constexpr size_t kFallbackStackBytes = size_t{256} << 10;

// The work that this thread's outermost RunFlat() has still to do; null outside of any.
thread_local std::vector<std::function<void()>>* waiting = nullptr;

// The middle of this thread's stack. The stack grows downwards, to lower addresses.
uintptr_t HalfOfStack() {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  uintptr_t half = here - kFallbackStackBytes / 2;
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    void* lowest = nullptr;
    size_t bytes = 0;
    if (pthread_attr_getstack(&attributes, &lowest, &bytes) == 0) {
      half = reinterpret_cast<uintptr_t>(lowest) + bytes / 2;
    }
    pthread_attr_destroy(&attributes);
  }
  return half;
}

std::atomic<int> other_threads{0};

tensorflow::UnboundedWorkQueue& OtherThreads() {
  static auto* queue = new tensorflow::UnboundedWorkQueue(tensorflow::Env::Default(), kStackThreadName);
  return *queue;
}

}  // namespace

void RunFlat(std::function<void()> work) {
  if (waiting != nullptr) {
    waiting->push_back(std::move(work));
    return;
  }
  std::vector<std::function<void()>> later;
  waiting = &later;
  work();
  while (!later.empty()) {
    const std::function<void()> next = std::move(later.back());
    later.pop_back();
    next();
  }
  waiting = nullptr;
}

bool RunNested(std::function<void()> work, int max_threads) {
  static thread_local const uintptr_t half = HalfOfStack();
  if (reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) > half) {
    work();
    return true;
  }
  if (other_threads.fetch_add(1) >= max_threads) {
    other_threads.fetch_sub(1);
    return false;
  }
  OtherThreads().Schedule([work = std::move(work)] {
    work();
    other_threads.fetch_sub(1);
  });
  return true;
}

}  // namespace tensorflow_recursion
