// Threads with little stack, on which whatever recurses in proportion to the user's data overflows.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_VALUES_SMALL_STACK_THREADS_H_
#define TENSORFLOW_RECURSION_TESTS_CC_VALUES_SMALL_STACK_THREADS_H_

#include <pthread.h>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"

namespace tensorflow_recursion {

// What recurses once for each of so many values overflows every stack, not only those of 256 KiB.
inline constexpr int kDeep = 1'000'000;
// So many overflow the stack of these threads six times over, if each takes no more than 16 bytes. To be used where a
// million values take seconds to make.
inline constexpr int kDeepForSmallStacks = 100'000;

// Threads with 256 KiB of stack, one per closure, joined at the end.
class SmallStackThreads {
 public:
  static constexpr size_t kStackBytes = size_t{256} * 1024;

  ~SmallStackThreads() {
    while (true) {
      std::vector<pthread_t> threads;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        threads.swap(threads_);
      }
      if (threads.empty()) return;
      for (pthread_t thread : threads) pthread_join(thread, nullptr);
    }
  }

  void Schedule(std::function<void()> closure) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, kStackBytes);
    auto* argument = new std::function<void()>(std::move(closure));
    std::lock_guard<std::mutex> lock(mutex_);
    pthread_t& thread = threads_.emplace_back();
    if (pthread_create(&thread, &attributes, &Main, argument) != 0) std::abort();
    pthread_attr_destroy(&attributes);
  }

 private:
  static void* Main(void* argument) {
    std::unique_ptr<std::function<void()>> closure(static_cast<std::function<void()>*>(argument));
    (*closure)();
    return nullptr;
  }

  std::mutex mutex_;
  std::vector<pthread_t> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_VALUES_SMALL_STACK_THREADS_H_
