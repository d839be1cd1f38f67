// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/kernel_launcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
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
  runner_.OnAsync("k", [this](KernelCall* call, const FakeRunner::Done& done) { started_.emplace_back(call, done); });
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
  const auto start = [this](KernelCall* call, const FakeRunner::Done& done) { started_.emplace_back(call, done); };
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
  runner_.OnAsync("k", [this](KernelCall* call, const FakeRunner::Done& done) { started_.emplace_back(call, done); });
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

// --- Chains in the main graph -----------------------------------------------------------------------

// main(x) has a chain of kernels k0, k1, k2 that other threads run, and `other` beside it so that they do. Each yields
// one more than its first input.
class ChainTest : public KernelLauncherTest {
 protected:
  ChainTest() {
    spreads_main_graph_ = true;
    for (const char* node : {"k0", "k1", "k2", "other"}) On(node, KernelRunner::Cost::kModerate);
    graph_.Arg("x").Kernel("other", {"x"}).Retval("other");
  }

  void On(const std::string& node, KernelRunner::Cost cost) {
    const auto plus_one = [this](KernelCall* call) {
      most_live_ = std::max(most_live_, live_.count());
      call->outputs[0] = live_.Make(LiveTensors::Number(call->inputs[0]) + 1);
      return absl::OkStatus();
    };
    runner_.On(node, plus_one, cost);
  }

  // Works until k0 and `other` wait for other threads, then lets one run k0.
  void RunChain() {
    SetProgram(graph_);
    parts_->calls.OpenRoot({live_.Make(5)});
    bytes_before_ = run_->frame_bytes;
    WorkToTheEnd();
    ASSERT_EQ(scheduled_.size(), 1);
    const std::optional<KernelFlight> held = parts_->kernels.TakeHeld();
    ASSERT_TRUE(held.has_value());
    const bool holds_chain = held->kernel->node->name == "k0";
    other_ = holds_chain ? scheduled_[0] : [flight = *held] { RunBeside(flight); };
    holds_chain ? static_cast<void>(RunBeside(*held)) : scheduled_[0]();
  }

  void LandAll() {
    for (Message& message : parts_->inbox.Take()) parts_->kernels.Land(&message);
    WorkToTheEnd();
  }

  // What the run yields when all of it has been done.
  std::vector<int> Finish() {
    LandAll();
    other_();
    for (size_t next = 1; parts_->kernels.flights().count() > 0;) {
      LandAll();
      if (const auto held = parts_->kernels.TakeHeld()) RunBeside(*held);
      if (next == scheduled_.size()) continue;
      const std::function<void()> work = scheduled_[next++];
      work();
    }
    return Retvals();
  }

  StaticGraph graph_;
  int64_t bytes_before_ = 0;
  int most_live_ = 0;
  std::function<void()> other_;
};

TEST_F(ChainTest, WhatWaitsForAKernelAloneGoesAlong) {
  On("k1", KernelRunner::Cost::kCheap);
  On("k2", KernelRunner::Cost::kExpensive);
  graph_.Kernel("k0", {"x"}).Kernel("k1", {"k0"}).Kernel("k2", {"k1"}).Retval("k2", 1);
  RunChain();
  EXPECT_EQ(runner_.runs("k2"), 1) << "before the worker has heard of k0";
  EXPECT_EQ(Finish(), (std::vector<int>{6, 8}));
  EXPECT_EQ(run_->frame_bytes, bytes_before_);
  ExpectNothingLeft();
}

TEST_F(ChainTest, OneThatReadsWhatHasComeGoesAlong) {
  graph_.Const("c", 3).Kernel("k0", {"x"}).Kernel("k1", {"k0", "x", "c"}).Kernel("k2", {"k1", "c"}).Retval("k2", 1);
  RunChain();
  EXPECT_EQ(runner_.runs("k2"), 1);
  EXPECT_EQ(Finish(), (std::vector<int>{6, 8}));
  ExpectNothingLeft();
}

TEST_F(ChainTest, WhatAKernelHasReadIsReleasedBeforeTheNextRuns) {
  std::string last = "x";
  for (int i = 0; i < 8; ++i) {
    const std::string node = absl::StrCat("k", i);
    On(node, KernelRunner::Cost::kModerate);
    graph_.Kernel(node, {last});
    last = node;
  }
  graph_.Retval(last, 1);
  RunChain();
  EXPECT_EQ(runner_.runs("k7"), 1);
  EXPECT_EQ(most_live_, 2) << "x, which `other` reads too, and what one kernel has yielded";
  EXPECT_EQ(Finish(), (std::vector<int>{6, 13}));
  ExpectNothingLeft();
}

TEST_F(ChainTest, OneThatOthersReadTooDoesNot) {
  graph_.Kernel("k0", {"x"}).Kernel("k1", {"k0"}).Kernel("k2", {"k0"}).Retval("k1", 1).Retval("k2", 2);
  RunChain();
  EXPECT_EQ(runner_.runs("k1") + runner_.runs("k2"), 0);
  EXPECT_EQ(Finish(), (std::vector<int>{6, 7, 7}));
  ExpectNothingLeft();
}

TEST_F(ChainTest, OneThatWaitsForMoreDoesNot) {
  graph_.Kernel("k0", {"x"}).Kernel("k1", {"k0", "other"}).Retval("k1", 1);
  RunChain();
  EXPECT_EQ(runner_.runs("k1"), 0);
  EXPECT_EQ(Finish(), (std::vector<int>{6, 7}));
  ExpectNothingLeft();
}

TEST_F(ChainTest, OneBehindWhatOthersWaitForByControlEdgesDoesNot) {
  graph_.Kernel("k0", {"x"}, 1, /*is_stateful=*/true).Kernel("k1", {"k0"});
  graph_.Kernel("k2", {"x", "^k0"}, 1, /*is_stateful=*/true).Retval("k1", 1).Retval("k2", 2);
  RunChain();
  EXPECT_EQ(runner_.runs("k1") + runner_.runs("k2"), 0);
  EXPECT_EQ(Finish(), (std::vector<int>{6, 7, 6}));
  ExpectNothingLeft();
}

TEST_F(ChainTest, AnAsynchronousOneIsStartedByTheWorker) {
  runner_.OnAsync("k1", [this](KernelCall* call, const FakeRunner::Done& done) { started_.emplace_back(call, done); });
  graph_.Kernel("k0", {"x"}).Kernel("k1", {"k0"}).Retval("k1", 1);
  RunChain();
  EXPECT_TRUE(started_.empty());
  LandAll();
  ASSERT_EQ(started_.size(), 1);
  started_[0].first->outputs[0] = live_.Make(9);
  started_[0].second(absl::OkStatus());
  EXPECT_EQ(Finish(), (std::vector<int>{6, 9}));
  ExpectNothingLeft();
}

TEST_F(ChainTest, AnErrorNamesItsKernelAndEndsTheChain) {
  graph_.Kernel("k0", {"x"}).Kernel("k1", {"k0"}).Kernel("k2", {"k1"}).Retval("k2", 1);
  for (const bool yields_nothing : {false, true}) {
    runner_.On("k1", [&](KernelCall*) { return yields_nothing ? absl::OkStatus() : absl::InternalError("broken"); });
    RunChain();
    EXPECT_EQ(runner_.runs("k2"), 0);
    LandAll();
    EXPECT_TRUE(absl::StrContains(run_->status().message(), yields_nothing ? "Missing output 0" : "broken"));
    EXPECT_TRUE(!yields_nothing || absl::StrContains(run_->status().message(), "k1")) << run_->status();
    other_();
    ExpectNothingLeft();
    scheduled_.clear();
  }
}

TEST_F(ChainTest, ARunThatHasFailedRunsNoMoreOfIt) {
  runner_.On("k0", [this](KernelCall* call) {
    run_->Fail(absl::InternalError("elsewhere"));
    call->outputs[0] = live_.Make(1);
    return absl::OkStatus();
  });
  graph_.Kernel("k0", {"x"}).Kernel("k1", {"k0"}).Retval("k1", 1);
  RunChain();
  EXPECT_EQ(runner_.runs("k1"), 0);
  other_();
  ExpectNothingLeft();
}

TEST_F(ChainTest, LongOnesTakeTurns) {
  constexpr int kLength = 100;
  std::string last = "x";
  for (int i = 0; i < kLength; ++i) {
    const std::string node = absl::StrCat("k", i);
    On(node, KernelRunner::Cost::kModerate);
    graph_.Kernel(node, {last});
    last = node;
  }
  graph_.Retval(last, 1);
  RunChain();
  EXPECT_EQ(runner_.runs("k1"), 1);
  EXPECT_EQ(runner_.runs("k99"), 0);
  EXPECT_EQ(Finish(), (std::vector<int>{6, 5 + kLength}));
  ExpectNothingLeft();
}

}  // namespace
}  // namespace tensorflow_recursion
