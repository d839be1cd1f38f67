// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/kernel_launcher.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tests/cc/executor/worker_parts_fixture.h"

namespace tensorflow_recursion {
namespace {

// main(x) = k(x), and an operator `other` that may be ready beside it.
class KernelLauncherTest : public WorkerPartsTest {
 protected:
  void Open(int max_workers = 1) {
    StaticGraph graph;
    graph.Arg("x").Kernel("other", {"x"}).Kernel("k", {"x"}).Retval("k").Retval("other", 1);
    SetProgram(graph, max_workers);
    parts_->calls.OpenRoot({live_.Make(5)});
  }

  // Fires operators until the kernel has been run or started.
  void FireKernel() {
    while (runner_.runs("k") == 0 && scheduled_.empty() && parts_->queue.has_operators()) FireNext();
  }

  void ExpectNothingLeft() {
    parts_->queue.Clear();
    Retvals();
    parts_.reset();
    EXPECT_EQ(live_.count(), 0);
  }

  std::vector<std::pair<KernelCall*, FakeRunner::Done>> started_;
};

TEST_F(KernelLauncherTest, AnOrdinaryKernelRunsHere) {
  Open();
  const int budget = parts_->context.budget;
  WorkToTheEnd();
  EXPECT_LT(parts_->context.budget, budget);
  EXPECT_TRUE(scheduled_.empty());
  EXPECT_EQ(Retvals(), (std::vector<int>{5, 5}));
  ExpectNothingLeft();
}

TEST_F(KernelLauncherTest, AFailedKernelEndsTheRunAndLeavesNoOutputs) {
  runner_.On("k", [this](KernelCall* call) {
    call->outputs[0] = live_.Make(6);
    return absl::InternalError("broken");
  });
  Open();
  FireKernel();
  EXPECT_EQ(run_->status(), absl::InternalError("broken"));
  EXPECT_TRUE(parts_->context.must_poll());
  ExpectNothingLeft();
}

TEST_F(KernelLauncherTest, AKernelThatYieldsNothingIsAnError) {
  runner_.On("k", [](KernelCall*) { return absl::OkStatus(); });
  Open();
  FireKernel();
  EXPECT_TRUE(absl::StrContains(run_->status().message(), "Missing output 0")) << run_->status();
  ExpectNothingLeft();
}

TEST_F(KernelLauncherTest, AnAsynchronousKernelEndsByAMessage) {
  runner_.OnAsync("k", [this](KernelCall* call, FakeRunner::Done done) { started_.emplace_back(call, done); });
  Open();
  WorkToTheEnd();
  ASSERT_EQ(started_.size(), 1);
  EXPECT_TRUE(parts_->inbox.Take().empty());
  run_->EndActivity();  // the worker's own
  EXPECT_FALSE(has_ended_) << "a kernel is in flight";
  run_->BeginActivity();
  started_[0].first->outputs[0] = live_.Make(7);
  started_[0].second(absl::OkStatus());
  std::vector<Message> mail = parts_->inbox.Take();
  ASSERT_EQ(mail.size(), 1);
  parts_->kernels.Land(&mail[0]);
  WorkToTheEnd();
  EXPECT_EQ(Retvals(), (std::vector<int>{7, 5}));
  mail.clear();
  ExpectNothingLeft();
}

TEST_F(KernelLauncherTest, AKernelThatHasLandedLeavesItsMemoryToTheNext) {
  const auto start = [this](KernelCall* call, FakeRunner::Done done) { started_.emplace_back(call, done); };
  runner_.OnAsync("k", start).OnAsync("next", start);
  StaticGraph graph;
  graph.Arg("x").Kernel("k", {"x"}).Kernel("next", {"k"}).Retval("next");
  SetProgram(graph, /*max_workers=*/1);
  parts_->calls.OpenRoot({live_.Make(5)});
  for (size_t i = 0; i < 2; ++i) {
    WorkToTheEnd();
    ASSERT_EQ(started_.size(), i + 1);
    started_[i].first->outputs[0] = live_.Make(LiveTensors::Number(started_[i].first->inputs[0]) + 1);
    started_[i].second(absl::OkStatus());
    std::vector<Message> mail = parts_->inbox.Take();
    ASSERT_EQ(mail.size(), 1);
    parts_->kernels.Land(&mail[0]);
  }
  EXPECT_EQ(started_[0].first, started_[1].first);
  WorkToTheEnd();
  EXPECT_EQ(Retvals(), std::vector<int>{7});
  ExpectNothingLeft();
}

TEST_F(KernelLauncherTest, WhatLandsAfterAnErrorIsReleased) {
  runner_.OnAsync("k", [this](KernelCall* call, FakeRunner::Done done) { started_.emplace_back(call, done); });
  Open();
  WorkToTheEnd();
  ASSERT_EQ(started_.size(), 1);
  started_[0].first->outputs[0] = live_.Make(7);
  started_[0].second(absl::OkStatus());
  std::vector<Message> mail = parts_->inbox.Take();
  run_->Fail(absl::InternalError("elsewhere"));
  ASSERT_EQ(mail.size(), 1);
  parts_->kernels.Land(&mail[0]);
  mail.clear();
  ExpectNothingLeft();
}

TEST_F(KernelLauncherTest, AnExpensiveKernelLeavesIfThereIsOtherWorkAndAThread) {
  const auto pass = [](KernelCall* call) {
    call->outputs[0] = call->inputs[0].Take();
    return absl::OkStatus();
  };
  runner_.On("k", pass, KernelRunner::Cost::kExpensive).On("other", pass, KernelRunner::Cost::kExpensive);
  Open(/*max_workers=*/2);
  FireNext();  // one of the two, while the other is ready
  EXPECT_EQ(scheduled_.size(), 1);
  EXPECT_EQ(runner_.runs("k") + runner_.runs("other"), 0);
  FireNext();  // nothing else to do
  EXPECT_EQ(scheduled_.size(), 1);
  EXPECT_EQ(runner_.runs("k") + runner_.runs("other"), 1);
  scheduled_[0]();
  std::vector<Message> mail = parts_->inbox.Take();
  ASSERT_EQ(mail.size(), 1);
  parts_->kernels.Land(&mail[0]);
  WorkToTheEnd();
  EXPECT_EQ(Retvals(), (std::vector<int>{5, 5}));
  EXPECT_TRUE(run_->BeginOffload()) << "the thread is free again";
}

}  // namespace
}  // namespace tensorflow_recursion
