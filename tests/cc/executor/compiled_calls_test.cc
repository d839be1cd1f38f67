// Calls in compiled code: on several workers, when a look at cancellation is due, and what special cases do.
// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/compiled_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tests/cc/executor/run_program_fixture.h"
#include "tests/cc/values/numbers.h"

namespace tensorflow_recursion {
namespace {

constexpr int kMostCallsBetweenLooks = 10'000;

// Fib whose leaves are n // n: Fib(0) is a special case, which the kernel of "Fib/leaf" does.
StaticGraph FibOfSpecialLeaves() {
  StaticGraph graph;
  AddMain(&graph, "Fib", 1);
  const Inputs start = {"^Fib/frame_start"};
  graph.Function("Fib", {"n"}).Const("Fib/one", 1, start).Const("Fib/two", 2, start);
  graph.Op("Fib/less", "Less", {"Fib/n", "Fib/two"}).Op("Fib/switch", "Switch", {"Fib/n", "Fib/less"});
  graph.Op("Fib/n1", "Sub", {"Fib/switch", "Fib/one"}).Op("Fib/n2", "Sub", {"Fib/switch", "Fib/two"});
  graph.Call("Fib/f1", "Fib", 2, {"Fib/n1"}).Call("Fib/f2", "Fib", 3, {"Fib/n2"});
  graph.Op("Fib/sum", "AddV2", {"Fib/f1/return_0", "Fib/f2/return_0"});
  graph.Op("Fib/leaf", "FloorDiv", {"Fib/switch:1", "Fib/switch:1"});
  Merge(&graph, "Fib/merge", {"Fib/sum", "Fib/leaf"}).Result("Fib", "Fib/merge");
  return graph;
}

class CompiledCallsTest : public RunProgramTest {
 protected:
  void SetCompiled(const StaticGraph& graph) {
    built_ = BuildCompiled(graph);
    ASSERT_TRUE(built_.status.ok());
    ASSERT_FALSE(built_->compiled.empty());
  }

  // Fib(0) = 0. The first worker waits in its 1000th until another one has had some, too, and has done `first` there.
  void SetForkingProgram(const std::function<absl::Status(KernelCall*)>& first) {
    SetCompiled(FibOfSpecialLeaves());
    runner_.On("Fib/leaf", [this, first](KernelCall* call) {
      call->outputs[0] = Number(0);
      if (call->worker == 0 && ++leaves_ == 1000) {
        EXPECT_TRUE(other_worked_.WaitForNotificationWithTimeout(absl::Minutes(5)));
      }
      if (call->worker == 0 || others_leaves_++ > 0) return absl::OkStatus();
      const absl::Status status = first(call);
      other_worked_.Notify();
      return status;
    });
  }

  Outcome RunOnWorkers(int workers, int n) {
    RunEnvironment environment = Environment();
    environment.max_workers = workers;
    return RunToEnd(environment, Numbers({n}));
  }

  std::atomic<int> leaves_{0};
  std::atomic<int> others_leaves_{0};
  absl::Notification other_worked_;
};

// --- Several workers ------------------------------------------------------------------------------

TEST_F(CompiledCallsTest, ALongCallGoesToSeveralWorkersInParts) {
  SetForkingProgram([](KernelCall*) { return absl::OkStatus(); });
  EXPECT_EQ(RunOnWorkers(2, 22).Numbers(), std::vector<int>{17711});
  EXPECT_EQ(runner_.workers(), 2);
}

TEST_F(CompiledCallsTest, ResultsAreTheSameOnAnyNumberOfWorkers) {
  SetCompiled(FibGraph());
  for (const int workers : {1, 2, 3, 8}) {
    for (int run = 0; run < 10; ++run) EXPECT_EQ(RunOnWorkers(workers, 24).Numbers(), std::vector<int>{46368});
  }
}

TEST_F(CompiledCallsTest, AnErrorInAPartHasThePathOfTheWholeCall) {
  SetForkingProgram([](KernelCall*) { return absl::InternalError("broken"); });
  const Outcome outcome = RunOnWorkers(2, 22);
  ExpectError(outcome, absl::StatusCode::kInternal,
              {"broken", "in call Fib > Fib > Fib > (", "more) > Fib > Fib > Fib"});
  // Fib(0) is at least 11 and at most 22 calls deep.
  const std::string text(outcome.status.message());
  const int between = std::stoi(text.substr(text.find('(') + 1));
  EXPECT_GE(between + 6, 11);
  EXPECT_LE(between + 6, 22);
}

TEST_F(CompiledCallsTest, WhatOnlyFramesCanDoInAPartIsDoneInFrames) {
  SetForkingProgram([this](KernelCall* call) {
    call->outputs[0].Release();
    call->outputs[0] = live_.Make(0);  // no number
    return absl::OkStatus();
  });
  Outcome outcome = RunOnWorkers(2, 22);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.Numbers(), std::vector<int>{17711});
  EXPECT_TRUE(built_->compiled[0].is_unfit.load());
  EXPECT_EQ(live_.count(), 0);
}

// A part may look at the frame that has made the call: if the call has to run in frames after all, that waits.
TEST_F(CompiledCallsTest, ACallGoesOnInFramesWhenAllItsPartsHaveComeBack) {
  SetCompiled(FibOfSpecialLeaves());
  absl::Notification in_frames;
  runner_.On("Fib/leaf", [&](KernelCall* call) {
    call->outputs[0] = Number(0);
    if (call->worker != 0) {
      if (others_leaves_++ > 0) return absl::OkStatus();
      other_worked_.Notify();
      // Not for long: nothing notifies it, if all is well, before this part has come back.
      EXPECT_FALSE(in_frames.WaitForNotificationWithTimeout(absl::Milliseconds(100)));
      return absl::InternalError("an error of a call that nobody needs");
    }
    if (++leaves_ < 1000) return absl::OkStatus();
    if (leaves_ > 1000) {
      if (!in_frames.HasBeenNotified()) in_frames.Notify();
      return absl::OkStatus();
    }
    EXPECT_TRUE(other_worked_.WaitForNotificationWithTimeout(absl::Minutes(5)));
    call->outputs[0] = live_.Make(0);  // no number
    return absl::OkStatus();
  });
  Outcome outcome = RunOnWorkers(2, 22);
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.Numbers(), std::vector<int>{17711});
  EXPECT_TRUE(in_frames.HasBeenNotified());
}

// F(n) = n if n < 2 else F(n - 2) + F(n - 1), where a single call, the last, is too deep.
TEST_F(CompiledCallsTest, TheDepthLimitIsTheSameInParts) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  const Inputs start = {"^F/frame_start"};
  graph.Function("F", {"n"}, 21).Const("F/one", 1, start).Const("F/two", 2, start);
  graph.Op("F/less", "Less", {"F/n", "F/two"}).Op("F/switch", "Switch", {"F/n", "F/less"});
  graph.Op("F/n1", "Sub", {"F/switch", "F/two"}).Op("F/n2", "Sub", {"F/switch", "F/one"});
  graph.Call("F/f1", "F", 2, {"F/n1"}).Call("F/f2", "F", 3, {"F/n2"});
  graph.Op("F/sum", "AddV2", {"F/f1/return_0", "F/f2/return_0"});
  Merge(&graph, "F/merge", {"F/sum", "F/switch:1"}).Result("F", "F/merge");
  SetCompiled(graph);
  for (const int workers : {1, 2, 3}) {
    ExpectError(
        RunOnWorkers(workers, 22), absl::StatusCode::kResourceExhausted,
        {"call of 'F' would be at depth 22, the limit is 21", "{{node F/f", "F > F > F > (15 more) > F > F > F"});
  }
}

// --- Cancellation ---------------------------------------------------------------------------------

// F(n) = n if n < 1 else F(n - 1) + 1: the depth is the number of its calls, so it is cancelled before it is too deep.
TEST_F(CompiledCallsTest, CancellationIsSeenWithinTenThousandCalls) {
  for (const int looks : {1, 2, 7, 30}) {
    StaticGraph graph;
    AddMain(&graph, "F", 1);
    const Inputs start = {"^F/frame_start"};
    graph.Function("F", {"n"}, int64_t{looks} * kMostCallsBetweenLooks).Const("F/one", 1, start);
    graph.Op("F/less", "Less", {"F/n", "F/one"}).Op("F/switch", "Switch", {"F/n", "F/less"});
    graph.Op("F/n1", "Sub", {"F/switch", "F/one"}).Call("F/call", "F", 2, {"F/n1"});
    graph.Op("F/sum", "AddV2", {"F/call/return_0", "F/one"});
    Merge(&graph, "F/merge", {"F/sum", "F/switch:1"}).Result("F", "F/merge");
    SetCompiled(graph);
    RunEnvironment environment = Environment();
    int looked = 0;
    environment.is_cancelled = [&] { return ++looked >= looks; };
    ExpectError(RunToEnd(environment, Numbers({kDeep})), absl::StatusCode::kCancelled, {"cancelled"});
  }
}

// Special cases suspend compiled code every few calls; the calls count all the same.
TEST_F(CompiledCallsTest, CancellationIsSeenWhereEveryCallIsASpecialCase) {
  SetCompiled(FibOfSpecialLeaves());
  RunEnvironment environment = Environment();
  int leaves = 0;
  int last_look = 0;
  int longest = 0;
  runner_.On("Fib/leaf", [&](KernelCall* call) {
    call->outputs[0] = Number(0);
    ++leaves;
    return absl::OkStatus();
  });
  environment.is_cancelled = [&] {
    longest = std::max(longest, leaves - last_look);
    last_look = leaves;
    return false;
  };
  EXPECT_EQ(RunToEnd(environment, Numbers({25})).Numbers(), std::vector<int>{75025});
  EXPECT_EQ(leaves, 46368);
  EXPECT_GT(last_look, leaves - kMostCallsBetweenLooks);
  EXPECT_LE(longest, kMostCallsBetweenLooks / 4);  // of four calls and a bit, one is Fib(0)
}

// Iterations count as calls do: sum of Fib(i) for i < n, where Fib(0) and Fib(1) take no further calls.
TEST_F(CompiledCallsTest, CancellationIsSeenInLoops) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"n"});
  AddSumOfFibs(&graph, "F/", "F/n", {"^F/frame_start"}, 2).Result("F", "F/exit");
  AddFib(&graph, 3);
  SetCompiled(graph);
  RunEnvironment environment = Environment();
  int looks = 0;
  environment.is_cancelled = [&] {
    ++looks;
    return false;
  };
  // The sum of Fib(i) for i < 24 makes 242,760 calls in 24 iterations.
  EXPECT_EQ(RunToEnd(environment, Numbers({24})).Numbers(), std::vector<int>{75024});
  EXPECT_GE(looks, 242'760 / kMostCallsBetweenLooks);
}

}  // namespace
}  // namespace tensorflow_recursion
