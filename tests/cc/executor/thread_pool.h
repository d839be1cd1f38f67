// Threads that run closures. TensorFlow's own pool would do, but a thread sanitizer cannot see into it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_EXECUTOR_THREAD_POOL_H_
#define TENSORFLOW_RECURSION_TESTS_CC_EXECUTOR_THREAD_POOL_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tensorflow_recursion {

// Runs what is scheduled, in order, on a fixed number of threads; its end waits for all of it.
class ThreadPool {
 public:
  explicit ThreadPool(int num_threads) {
    for (int i = 0; i < num_threads; ++i) threads_.emplace_back([this] { Serve(); });
  }
  ~ThreadPool() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      is_closing_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void Schedule(std::function<void()> closure) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      closures_.push_back(std::move(closure));
    }
    changed_.notify_one();
  }

 private:
  void Serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return is_closing_ || !closures_.empty(); });
      if (closures_.empty()) return;
      std::function<void()> closure = std::move(closures_.front());
      closures_.pop_front();
      lock.unlock();
      closure();
      closure = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> closures_;
  bool is_closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_EXECUTOR_THREAD_POOL_H_
