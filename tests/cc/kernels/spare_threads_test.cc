// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/spare_threads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tensorflow_recursion {
namespace {

// Runs a piece of work that does nothing; returns its thread.
std::thread::id ThreadOfOne() {
  std::thread::id thread;
  absl::Notification done;
  RunOnSpareThread([&] {
    thread = std::this_thread::get_id();
    done.Notify();
  });
  done.WaitForNotification();
  return thread;
}

TEST(SpareThreadsTest, RunOnAnotherThread) { EXPECT_NE(ThreadOfOne(), std::this_thread::get_id()); }

TEST(SpareThreadsTest, AreUsedAgain) {
  // Once only might be too early for the last one.
  std::set<std::thread::id> threads;
  constexpr int kTimes = 100;
  for (int i = 0; i < kTimes; ++i) {
    threads.insert(ThreadOfOne());
    absl::SleepFor(absl::Milliseconds(1));
  }
  EXPECT_LT(threads.size(), kTimes / 2u);
}

TEST(SpareThreadsTest, RunManyAtOnce) {
  constexpr int kMany = 100;
  for (int round = 0; round < 3; ++round) {
    absl::BlockingCounter started(kMany), ended(kMany);
    absl::Notification go;
    std::mutex mutex;
    std::set<std::thread::id> threads;
    for (int i = 0; i < kMany; ++i) {
      RunOnSpareThread([&] {
        {
          std::lock_guard<std::mutex> lock(mutex);
          threads.insert(std::this_thread::get_id());
        }
        started.DecrementCount();
        go.WaitForNotification();
        ended.DecrementCount();
      });
    }
    started.Wait();
    EXPECT_EQ(threads.size(), kMany) << "none waits for another's thread";
    go.Notify();
    ended.Wait();
  }
}

TEST(SpareThreadsTest, TakeWorkFromManyThreads) {
  constexpr int kThreads = 8, kEach = 500;
  absl::BlockingCounter left(kThreads * kEach);
  std::vector<int> times(kThreads * kEach, 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int j = 0; j < kEach; ++j) {
        RunOnSpareThread([&, at = i * kEach + j] {
          ++times[at];
          left.DecrementCount();
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  left.Wait();
  EXPECT_EQ(times, std::vector<int>(kThreads * kEach, 1));
}

TEST(SpareThreadsTest, RunWorkThatAsksForMore) {
  absl::Notification inner, outer;
  RunOnSpareThread([&] {
    RunOnSpareThread([&] { inner.Notify(); });
    inner.WaitForNotification();
    outer.Notify();
  });
  outer.WaitForNotification();
}

TEST(SpareThreadsTest, HoldNothingOfWorkThatIsDone) {
  auto held = std::make_shared<int>(0);
  const std::weak_ptr<int> watch = held;
  RunOnSpareThread([held = std::move(held)] { ++*held; });
  const absl::Time deadline = absl::Now() + absl::Seconds(5);  // before an idle thread would end
  while (!watch.expired() && absl::Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace tensorflow_recursion
