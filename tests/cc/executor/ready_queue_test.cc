// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/ready_queue.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <vector>

#include "tests/cc/values/live_tensors.h"

namespace tensorflow_recursion {
namespace {

TEST(ReadyQueueTest, TheNewestOperatorComesFirst) {
  Frame frame{};
  ReadyQueue queue;
  for (uint32_t op = 0; op < 1000; ++op) queue.Push(&frame, OpId(op), Value::Scalar(op));
  for (uint32_t op = 1000; op-- > 0;) {
    ASSERT_TRUE(queue.has_operators());
    const ReadyOperator& item = *queue.PopOperator();
    EXPECT_EQ(item.frame, &frame);
    EXPECT_EQ(item.op, op);
    EXPECT_EQ(item.value.bits, op);
  }
  EXPECT_TRUE(queue.empty());
}

TEST(ReadyQueueTest, WhatIsQueuedCountsInItsFrame) {
  Frame frame{};
  ReadyQueue queue;
  queue.Push(&frame, OpId(1));
  queue.PushCall(&frame, OpId(2));
  EXPECT_EQ(frame.live, 2);
  queue.PopOperator();
  queue.PopCall();
  EXPECT_EQ(frame.live, 2) << "whoever takes it out takes the count over";
}

TEST(ReadyQueueTest, CallsGoNewestFirstAndAreGivenAwayOldestFirst) {
  Frame frame{};
  ReadyQueue queue;
  std::vector<uint32_t> expected;
  uint32_t next = 0;
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 3; ++i) {
      expected.push_back(next);
      queue.PushCall(&frame, OpId(next++));
    }
    ASSERT_EQ(queue.oldest_call().op, expected.front());
    queue.RemoveOldestCall();
    expected.erase(expected.begin());
    ASSERT_EQ(queue.PopCall().op, expected.back());
    expected.pop_back();
    ASSERT_EQ(queue.num_calls(), expected.size());
  }
  while (queue.has_calls()) {
    ASSERT_EQ(queue.PopCall().op, expected.back());
    expected.pop_back();
  }
  EXPECT_TRUE(expected.empty());
}

TEST(ReadyQueueTest, ShufflingTakesEveryOperatorOnce) {
  Frame frame{};
  ReadyQueue queue(/*shuffle_seed=*/7);
  std::vector<uint32_t> newest_first;
  for (uint32_t op = 0; op < 100; ++op) queue.Push(&frame, OpId(op));
  std::vector<uint32_t> order;
  while (queue.has_operators()) order.push_back(queue.PopOperator()->op);
  EXPECT_EQ(std::set<uint32_t>(order.begin(), order.end()).size(), 100);
  for (uint32_t op = 100; op-- > 0;) newest_first.push_back(op);
  EXPECT_NE(order, newest_first);
}

TEST(ReadyQueueTest, ClearReleasesValues) {
  LiveTensors live;
  Frame frame{};
  ReadyQueue queue;
  queue.Push(&frame, OpId(1), live.Make(1));
  queue.PushCall(&frame, OpId(2));
  queue.PushCall(&frame, OpId(3));
  queue.RemoveOldestCall();
  queue.Clear();
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(live.count(), 0);
}

}  // namespace
}  // namespace tensorflow_recursion
