// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/flat_stack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/cc/values/small_stack_threads.h"

namespace tensorflow_recursion {
namespace {

constexpr uintptr_t kMegabyte = 1 << 20;

uintptr_t Frame() { return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)); }

TEST(RunFlatTest, RunsNestedWorkAfterTheWorkThatAskedForIt) {
  std::vector<int> order;
  RunFlat([&] {
    RunFlat([&] { order.push_back(2); });
    order.push_back(1);
  });
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(RunFlatTest, RunsTheLatestFirst) {
  std::vector<int> order;
  RunFlat([&] {
    RunFlat([&] { order.push_back(3); });
    RunFlat([&] {
      order.push_back(1);
      RunFlat([&] { order.push_back(2); });
    });
  });
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(RunFlatTest, UsesNoMoreStackHoweverDeepTheCalls) {
  const uintptr_t top = Frame();
  uintptr_t lowest = top;
  std::function<void(int)> call = [&](int n) {
    lowest = std::min(lowest, Frame());
    if (n > 0) RunFlat([&call, n] { call(n - 1); });
  };
  RunFlat([&] { call(kDeep); });
  EXPECT_LT(top - lowest, 64 * 1024u);
}

TEST(RunNestedTest, ContinuesOnOtherThreadsWhenHalfOfTheStackIsUsed) {
  absl::Notification done;
  std::atomic<uintptr_t> most{0};
  std::function<void(int)> call = [&](int n) {
    static thread_local const uintptr_t top = Frame();
    [[maybe_unused]] volatile char block[256];  // what a call keeps on its stack
    block[0] = 0;
    most = std::max<uintptr_t>(most, top > Frame() ? top - Frame() : 0);
    if (n == 0) {
      done.Notify();
      return;
    }
    ASSERT_TRUE(RunNested([&call, n] { call(n - 1); }, /*max_threads=*/1000));
  };
  call(kDeep / 10);  // 256 bytes each and more: 30 MB in all
  done.WaitForNotification();
  EXPECT_LT(most, 6 * kMegabyte);  // threads have 8 MB
}

TEST(RunNestedTest, RefusesWhenAllThreadsAreTaken) {
  bool refused = false;
  std::function<void()> call = [&] {
    [[maybe_unused]] volatile char block[1024];  // what a call keeps on its stack
    block[0] = 0;
    if (!RunNested([&call] { call(); }, /*max_threads=*/0)) refused = true;
  };
  call();
  EXPECT_TRUE(refused);
}

}  // namespace
}  // namespace tensorflow_recursion
