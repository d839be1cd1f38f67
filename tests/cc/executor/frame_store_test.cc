// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/frame_store.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/cc/executor/worker_parts_fixture.h"

namespace tensorflow_recursion {
namespace {

class FrameStoreTest : public WorkerPartsTest {
 protected:
  void SetUp() override {
    const StaticGraph graph = FibGraph();
    SetProgram(graph);
    fib_ = &RegionOf("Fib");
    site_ = OpsOf(*fib_, OpKind::kCallSite).front();
  }

  const Region* fib_ = nullptr;
  OpId site_;
};

TEST_F(FrameStoreTest, ANewFrameCountsForWhoeverOpensIt) {
  Frame* parent = NewFrame(*fib_);
  Frame* child = NewFrame(*fib_, parent, site_);
  EXPECT_EQ(child->live, 1);
  EXPECT_EQ(child->parent, parent);
  EXPECT_EQ(child->site_op, site_);
  EXPECT_EQ(child->depth, 1);
  EXPECT_EQ(child->owner, &parts_->inbox);
  EXPECT_EQ(child->missing, 0);
}

TEST_F(FrameStoreTest, AFrameThatEndsGivesItsParentsCountBack) {
  Frame* parent = NewFrame(*fib_);
  parent->live = 2;  // the child's, and one more
  parts_->frames.Unref(NewFrame(*fib_, parent, site_));
  EXPECT_EQ(parent->live, 1);
}

TEST_F(FrameStoreTest, AChainOfAnyLengthEndsAtOnce) {
  Frame* last = NewFrame(*fib_);
  for (int i = 0; i < 1'000'000; ++i) last = NewFrame(*fib_, last, site_);
  const int64_t bytes = run_->frame_bytes;
  parts_->frames.Unref(last);
  EXPECT_LT(run_->frame_bytes, bytes / 10);
}

TEST_F(FrameStoreTest, AFrameThatEndsTakesItsPartialCallsWithIt) {
  Frame* frame = NewFrame(*fib_);
  parts_->partial_calls.AddDeadArgument(frame, site_, 0);
  parts_->frames.Unref(frame);
  EXPECT_TRUE(parts_->partial_calls.empty());
}

TEST_F(FrameStoreTest, TheOwnerOfAParentElsewhereIsTold) {
  WorkerParts other(run_.get(), 1, [] {});
  other.inbox.Open();
  Frame* parent = other.frames.New(*fib_, nullptr, kNone, 0);
  parts_->frames.Unref(NewFrame(*fib_, parent, site_));
  EXPECT_EQ(parent->live, 1) << "only its owner may count";
  const std::vector<Message> mail = other.inbox.Take();
  ASSERT_EQ(mail.size(), 1);
  EXPECT_EQ(mail[0].kind, Message::Kind::kChildEnded);
  EXPECT_EQ(mail[0].frame, parent);
}

}  // namespace
}  // namespace tensorflow_recursion
