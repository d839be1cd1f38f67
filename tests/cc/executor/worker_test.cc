// What a worker does first, what it gives away, and when it leaves its thread.
// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/worker.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "cc/executor/run_program.h"
#include "cc/executor/worker_profile.h"
#include "tests/cc/analysis/static_graphs.h"
#include "tests/cc/executor/fake_runner.h"
#include "tests/cc/program/built_programs.h"
#include "tests/cc/values/live_tensors.h"

namespace tensorflow_recursion {
namespace {

using Cost = KernelRunner::Cost;

// Runs programs without any thread but the test's. The first worker works until it has nothing to do. What it has for
// other threads waits in `scheduled_` and `threads_`, until the test runs it.
class WorkerTest : public ::testing::Test {
 protected:
  using Work = std::vector<std::function<void()>>;

  void SetUp() override {
    environment_.runner = &runner_;
    environment_.schedule = [this](std::function<void()> work) { scheduled_.push_back(std::move(work)); };
  }

  // F, G and H(x) each run a kernel, which the log names.
  void AddFunctions() {
    for (const char* name : {"F", "G", "H"}) {
      const auto in = [&](const char* node) { return absl::StrCat(name, "/", node); };
      graph_.Function(name, {"x"}).Kernel(in("k"), {in("x")}).Result(name, in("k"));
      Log(in("k"));
    }
  }
  // The main graph calls F, G and H, all at once: when the kernel `warm` has run, after which a worker looks up.
  void CallThree() {
    AddFunctions();
    Log("warm", Cost::kExpensive);
    graph_.Arg("x").Kernel("warm", {"x"});
    graph_.Call("f", "F", 1, {"warm"}).Call("g", "G", 2, {"warm"}).Call("h", "H", 3, {"warm"});
    graph_.Retval("f/return_0", 0).Retval("g/return_0", 1).Retval("h/return_0", 2);
  }

  // The log gets a line when the kernel runs: its name, and which worker runs it if that is not the first. The kernel
  // hands its first input on.
  void Log(const std::string& node, Cost cost = Cost::kCheap) {
    runner_.On(node, [this, node](KernelCall* call) { return Logged(node, call); }, cost);
  }
  absl::Status Logged(const std::string& node, KernelCall* call) {
    log_.push_back(call->worker == 0 ? node : absl::StrCat(node, " on ", call->worker));
    call->outputs[0] = call->inputs[0].Take().Escape();
    return absl::OkStatus();
  }

  // Runs the graph, whose argument is a 5.
  void Start() {
    built_ = BuildOrFail(graph_);
    environment_.program = built_.program.get();
    has_ended_ = false;
    log_.clear();
    RunProgram(environment_, {live_.Make(5)}, [this](const absl::Status& status, std::vector<Value> retvals) {
      outcome_.Release();
      outcome_.status = status;
      outcome_.retvals = std::move(retvals);
      has_ended_ = true;
    });
  }

  // Does the first of what other threads were to do.
  static void DoFirst(Work* work) {
    ASSERT_FALSE(work->empty());
    const std::function<void()> first = std::move(work->front());
    work->erase(work->begin());
    first();
  }
  void DoAll() {
    while (!scheduled_.empty()) DoFirst(&scheduled_);
  }

  void ExpectError(absl::StatusCode code) {
    EXPECT_TRUE(has_ended_);
    EXPECT_EQ(outcome_.status.code(), code) << outcome_.status;
    EXPECT_EQ(live_.count(), 0);
  }

  LiveTensors live_;
  StaticGraph graph_;
  BuiltProgram built_;
  FakeRunner runner_;
  RunEnvironment environment_;
  Work scheduled_;
  Work threads_;
  std::vector<std::string> log_;
  Outcome outcome_;
  bool has_ended_ = false;
};

// --- The order of work ----------------------------------------------------------------------------

TEST_F(WorkerTest, AFrameDoesAllItCanBeforeItCalls) {
  AddFunctions();
  for (const char* node : {"k0", "k1", "k2"}) Log(node);
  graph_.Arg("x").Call("f", "F", 1, {"x"}).Kernel("k0", {"x"}).Kernel("k1", {"k0"}).Kernel("k2", {"k1"});
  graph_.Retval("f/return_0", 0).Retval("k2", 1);
  Start();
  EXPECT_EQ(log_, (std::vector<std::string>{"k0", "k1", "k2", "F/k"}));
  EXPECT_TRUE(has_ended_);
}

TEST_F(WorkerTest, CallsGoDepthFirst) {
  AddFunctions();
  graph_.Function("CallsF", {"x"}).Call("CallsF/f", "F", 3, {"CallsF/x"}).Kernel("CallsF/k", {"CallsF/f/return_0"});
  graph_.Result("CallsF", "CallsF/k").Arg("x").Call("a", "CallsF", 1, {"x"}).Call("b", "CallsF", 2, {"x"});
  graph_.Retval("a/return_0", 0).Retval("b/return_0", 1);
  Log("CallsF/k");
  Start();
  EXPECT_EQ(log_, (std::vector<std::string>{"F/k", "CallsF/k", "F/k", "CallsF/k"}));
}

TEST_F(WorkerTest, AKernelThatHasEndedIsSeenBeforeACallIsOpened) {
  AddFunctions();
  graph_.Arg("x").Call("f", "F", 1, {"x"}).Kernel("async", {"x"}).Kernel("after", {"async"});
  graph_.Retval("f/return_0", 0).Retval("after", 1);
  runner_.OnAsync("async", [](KernelCall* call, const FakeRunner::Done& done) {
    call->outputs[0] = call->inputs[0].Take().Escape();
    done(absl::OkStatus());
  });
  Log("after");
  Start();
  EXPECT_EQ(log_, (std::vector<std::string>{"after", "F/k"}));
}

// P(x, y) reads both by kernels of their own.
TEST_F(WorkerTest, ACallWithOnlySomeArgumentsIsOpenedWhenNothingElseIsLeft) {
  AddFunctions();
  graph_.Function("P", {"x", "y"}).Kernel("P/kx", {"P/x"}).Kernel("P/ky", {"P/y"});
  graph_.Result("P", "P/kx", 0).Result("P", "P/ky", 1);
  graph_.Arg("x").Kernel("async", {"x"}).Call("p", "P", 1, {"x", "async"}, 2).Call("f", "F", 2, {"x"});
  graph_.Retval("p/return_0", 0).Retval("p/return_1", 1).Retval("f/return_0", 2);
  FakeRunner::Done done;
  runner_.OnAsync("async", [&](KernelCall* call, FakeRunner::Done when_done) {
    call->outputs[0] = call->inputs[0].Take().Escape();
    done = std::move(when_done);
  });
  Log("P/kx");
  Log("P/ky");
  Start();
  EXPECT_EQ(log_, (std::vector<std::string>{"F/k", "P/kx"}));
  EXPECT_FALSE(has_ended_);
  done(absl::OkStatus());
  DoAll();
  EXPECT_EQ(log_.back(), "P/ky");
  EXPECT_TRUE(has_ended_);
}

TEST_F(WorkerTest, AKernelThatWaitsForOthersRunsWhenNoCallIsLeft) {
  AddFunctions();
  graph_.Arg("x").Kernel("shared", {"x", "x"}).Call("f", "F", 1, {"x"}).Retval("shared", 0).Retval("f/return_0", 1);
  runner_.OnTogether(
      "shared", [this](KernelCall* call) { return Logged("shared", call); },
      [](absl::Span<KernelCall>) { return false; });
  Start();
  EXPECT_EQ(log_, (std::vector<std::string>{"F/k", "shared"}));
}

// --- Between workers ------------------------------------------------------------------------------

TEST_F(WorkerTest, TheOldestCallGoesToAnIdleWorker) {
  CallThree();
  Start();
  ASSERT_EQ(log_.size(), 4);
  ASSERT_TRUE(scheduled_.empty());
  const std::string newest = log_[1];
  const std::string between = log_[2];
  const std::string oldest = log_[3];
  environment_.max_workers = 2;
  Start();
  EXPECT_EQ(log_, (std::vector<std::string>{"warm", newest, between}));
  EXPECT_FALSE(has_ended_) << "the oldest call waits for the other worker";
  DoFirst(&scheduled_);
  EXPECT_EQ(log_.back(), oldest + " on 1");
  DoAll();
  EXPECT_TRUE(has_ended_);
  EXPECT_EQ(outcome_.Numbers(), (std::vector<int>{5, 5, 5}));
}

TEST_F(WorkerTest, AWorkerKeepsItsOnlyCall) {
  AddFunctions();
  graph_.Arg("x").Kernel("warm", {"x"}).Call("f", "F", 1, {"warm"}).Retval("f/return_0");
  Log("warm", Cost::kExpensive);
  environment_.max_workers = 2;
  Start();
  EXPECT_EQ(log_, (std::vector<std::string>{"warm", "F/k"}));
  EXPECT_TRUE(scheduled_.empty());
}

// The first worker is idle when the second has several calls.
TEST_F(WorkerTest, AWorkerThatIsDoneHelpsOthers) {
  AddFunctions();
  graph_.Function("Many", {"x"}).Kernel("Many/k", {"Many/x"});
  graph_.Call("Many/a", "F", 4, {"Many/k"}).Call("Many/b", "F", 5, {"Many/k"});
  graph_.Kernel("Many/sum", {"Many/a/return_0", "Many/b/return_0"}).Result("Many", "Many/sum");
  graph_.Arg("x").Kernel("warm", {"x"}).Call("a", "Many", 1, {"warm"}).Call("b", "Many", 2, {"warm"});
  graph_.Retval("a/return_0", 0).Retval("b/return_0", 1);
  Log("warm", Cost::kExpensive);
  Log("Many/k", Cost::kExpensive);
  environment_.max_workers = 2;
  Start();
  DoFirst(&scheduled_);
  EXPECT_EQ(std::vector<std::string>(log_.end() - 2, log_.end()),
            (std::vector<std::string>{"Many/k on 1", "F/k on 1"}));
  DoFirst(&scheduled_);
  EXPECT_EQ(log_.back(), "F/k") << "by the first worker, to which the second has given it";
  DoAll();
  EXPECT_TRUE(has_ended_);
}

TEST_F(WorkerTest, TheThreadThatRunsAHeldKernelGoesOnAsTheWorker) {
  graph_.Arg("x").Kernel("a", {"x"}).Kernel("b", {"x"}).Kernel("sum", {"a", "b"}).Retval("sum");
  for (const char* node : {"a", "b", "sum"}) Log(node, Cost::kExpensive);
  environment_.spreads_main_graph = true;
  Start();
  EXPECT_EQ(log_.size(), 1) << "this thread has run one of the two";
  EXPECT_FALSE(has_ended_);
  DoFirst(&scheduled_);
  EXPECT_EQ(log_.size(), 3);
  EXPECT_TRUE(has_ended_) << "on the thread that has run the other one";
  EXPECT_TRUE(scheduled_.empty());
}

// --- Looking up -----------------------------------------------------------------------------------

TEST_F(WorkerTest, ACancelledRunDropsItsWorkAtTheNextLook) {
  CallThree();
  environment_.is_cancelled = [] { return true; };
  Start();
  EXPECT_EQ(log_, std::vector<std::string>{"warm"});
  ExpectError(absl::StatusCode::kCancelled);
}

TEST_F(WorkerTest, AnErrorDropsCallsAndOperatorsThatAreReady) {
  CallThree();
  graph_.Kernel("other", {"warm"}).Kernel("another", {"warm"}).Retval("other", 3).Retval("another", 4);
  for (const char* node : {"other", "another"}) {
    runner_.On(node, [](KernelCall*) { return absl::InternalError("broken"); });
  }
  Start();
  EXPECT_EQ(log_, std::vector<std::string>{"warm"});
  EXPECT_EQ(runner_.runs("other") + runner_.runs("another"), 1);
  ExpectError(absl::StatusCode::kInternal);
}

TEST_F(WorkerTest, ACallThatWasGivenAwayIsNotOpenedAfterAnError) {
  CallThree();
  for (const char* node : {"F/k", "G/k", "H/k"}) {
    runner_.On(node, [](KernelCall*) { return absl::InternalError("broken"); });
  }
  environment_.max_workers = 2;
  Start();
  EXPECT_FALSE(has_ended_) << "the other worker has a message";
  EXPECT_GT(live_.count(), 0);
  DoAll();
  EXPECT_EQ(runner_.runs("F/k") + runner_.runs("G/k") + runner_.runs("H/k"), 1);
  ExpectError(absl::StatusCode::kInternal);
}

TEST_F(WorkerTest, AWorkerLeavesItsThreadAfterItsSliceAndStaysOnItsOwn) {
  CallThree();
  for (const char* node : {"F/k", "G/k", "H/k"}) Log(node, Cost::kExpensive);  // it looks up after each
  environment_.slice = -absl::Seconds(1);                                      // is over
  environment_.start_thread = [this](std::function<void()> work) { threads_.push_back(std::move(work)); };
  Start();
  EXPECT_EQ(log_, std::vector<std::string>{"warm"});
  EXPECT_FALSE(has_ended_);
  DoFirst(&threads_);
  EXPECT_EQ(log_.size(), 4);
  EXPECT_TRUE(has_ended_);
  EXPECT_TRUE(threads_.empty());
}

TEST_F(WorkerTest, AWorkerStaysWhereThereAreNoOtherThreads) {
  CallThree();
  environment_.slice = -absl::Seconds(1);
  Start();
  EXPECT_TRUE(has_ended_);
}

// A chain of kernels, each of which takes a while. The first two have the worker look up, and so tell how slow they
// are.
TEST_F(WorkerTest, AWorkerLooksUpMoreOftenWhereItsWorkIsSlow) {
  constexpr int kKernels = 100;
  std::string last = "x";
  graph_.Arg("x");
  for (int i = 0; i < kKernels; ++i) {
    const std::string node = absl::StrCat("k", i);
    graph_.Kernel(node, {last});
    last = node;
    const auto take_a_while = [](KernelCall* call) {
      const int64_t start = ProfileClock();
      while (ProfileClock() - start < 200'000) {
      }
      call->outputs[0] = call->inputs[0].Take();
      return absl::OkStatus();
    };
    runner_.On(node, take_a_while, i < 2 ? Cost::kExpensive : Cost::kCheap);
  }
  graph_.Retval(last);
  int looks = 0;
  environment_.is_cancelled = [&] {
    ++looks;
    return false;
  };
  Start();
  EXPECT_TRUE(has_ended_);
  EXPECT_GT(looks, 20) << "of fast kernels it does some sixty between two looks";
}

}  // namespace
}  // namespace tensorflow_recursion
