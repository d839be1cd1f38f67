// Several workers, kernels that end elsewhere, and whose threads they hold.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/cc/executor/run_program_fixture.h"
#include "tests/cc/executor/thread_pool.h"
#include "tests/cc/values/numbers.h"
#include "tests/cc/values/small_stack_threads.h"

namespace tensorflow_recursion {
namespace {

// --- Several workers ------------------------------------------------------------------------------

TEST_F(RunProgramTest, CallsSpreadOverWorkers) {
  StaticGraph graph;
  graph.Arg("x").Kernel("warm", {"x"}).Call("a", "F", 1, {"warm"}).Call("b", "F", 2, {"warm"});
  graph.Op("sum", "AddV2", {"a/return_0", "b/return_0"}).Retval("sum");
  graph.Function("F", {"x"}).Kernel("F/meet", {"F/x"}).Result("F", "F/meet");
  Meeting meeting;
  runner_.On("F/meet", [&](KernelCall* call) { return meeting.Join(call); });
  runner_.On(
      "warm",
      [](KernelCall* call) {
        call->outputs[0] = call->inputs[0].Take();
        return absl::OkStatus();
      },
      KernelRunner::Cost::kExpensive);
  SetProgram(graph);
  RunEnvironment environment = Environment();
  environment.max_workers = 2;
  EXPECT_EQ(RunToEnd(environment, Numbers({1})).Numbers(), std::vector<int>{2});
  EXPECT_EQ(runner_.workers(), 2);
}

TEST_F(RunProgramTest, ManyCallsOnSeveralWorkersGiveTheSameResult) {
  const StaticGraph graph = FibGraph();
  SetProgram(graph);
  for (const int workers : {2, 3, 8}) {
    RunEnvironment environment = Environment(workers);
    environment.max_workers = workers;
    EXPECT_EQ(RunToEnd(environment, Numbers({20})).Numbers(), std::vector<int>{6765});
  }
}

// fib(16) makes some three thousand calls: others would get some of them.
TEST_F(RunProgramTest, ARunIsAloneForAsLongAsItIsTold) {
  SetProgram(FibGraph());
  RunEnvironment environment = Environment();
  environment.max_workers = 4;
  environment.trace = true;  // additions are kernels
  environment.alone = absl::Hours(1);
  EXPECT_EQ(RunToEnd(environment, Numbers({16})).Numbers(), std::vector<int>{987});
  EXPECT_EQ(runner_.workers(), 1);
  environment.alone = absl::Nanoseconds(1);
  EXPECT_EQ(RunToEnd(environment, Numbers({16})).Numbers(), std::vector<int>{987});
}

// F(n, t) = t if n < 1 else F(n - 1, t) + F(n - 1, t), the sum by a kernel that is worth a thread.
void AddTree(StaticGraph* graph) {
  const Inputs frame_start = {"^F/frame_start"};
  graph->Function("F", {"n", "t"}).Const("F/one", 1, frame_start).Op("F/less", "Less", {"F/n", "F/one"});
  graph->Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/st", "Switch", {"F/t", "F/less"});
  graph->Op("F/n1", "Sub", {"F/sn", "F/one"});
  graph->Call("F/a", "F", 2, {"F/n1", "F/st"}).Call("F/b", "F", 3, {"F/n1", "F/st"});
  graph->Kernel("F/add", {"F/a/return_0", "F/b/return_0"});
  Merge(graph, "F/merge", {"F/add", "F/st:1"}).Result("F", "F/merge");
}

TEST_F(RunProgramTest, ExpensiveKernelsSpreadToo) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  AddTree(&graph);
  std::atomic<int> sums{0};
  std::atomic<int> last{0};  // sums before the one that fails
  auto add = [&](KernelCall* call) {
    if (++sums == last) return absl::InternalError("broken");
    call->outputs[0] = live_.Make(LiveTensors::Number(call->inputs[0]) + LiveTensors::Number(call->inputs[1]));
    return absl::OkStatus();
  };
  runner_.On("F/add", add, KernelRunner::Cost::kExpensive);
  SetProgram(graph);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("shuffle_seed ", seed));
    RunEnvironment environment = Environment(seed);
    environment.max_workers = 4;
    last = 0;
    Outcome outcome = RunToEnd(environment, {Number(8), live_.Make(3)});
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.Numbers(), std::vector<int>{3 * 256});
    outcome.Release();
    EXPECT_EQ(live_.count(), 0);
    sums = 0;
    last = 100;
    ExpectError(RunToEnd(environment, {Number(8), live_.Make(3)}), absl::StatusCode::kInternal,
                {"broken", "in call F"});
  }
}

TEST_F(RunProgramTest, OneProgramServesConcurrentRuns) {
  const StaticGraph graph = FibGraph();
  SetProgram(graph);
  std::vector<PendingRun> runs(8);
  absl::BlockingCounter started(8);
  for (size_t i = 0; i < runs.size(); ++i) {
    RunEnvironment environment = Environment(i);
    environment.max_workers = 2;
    pool_.Schedule([&runs, &started, i, environment] {
      runs[i].Start(environment, Numbers({static_cast<int>(10 + i)}));
      started.DecrementCount();
    });
  }
  started.Wait();
  std::vector<int> results;
  for (PendingRun& run : runs) results.push_back(run.Wait().Numbers()[0]);
  EXPECT_EQ(results, (std::vector<int>{55, 89, 144, 233, 377, 610, 987, 1597}));
}

// --- Asynchronous kernels -------------------------------------------------------------------------

TEST_F(RunProgramTest, AsynchronousKernelsMayEndAtOnce) {
  for (const char* node : {"F/down", "F/up"}) {
    runner_.OnAsync(node, [](KernelCall* call, FakeRunner::Done done) {
      call->outputs[0] = call->inputs[0].Take();
      done(absl::OkStatus());
    });
  }
  SetProgram(AsyncCount());
  ExpectInEveryOrder({50}, {50});
}

TEST_F(RunProgramTest, AsynchronousKernelsMayEndOnOtherThreads) {
  for (const char* node : {"F/down", "F/up"}) {
    runner_.OnAsync(node, [this](KernelCall* call, FakeRunner::Done done) {
      call->outputs[0] = call->inputs[0].Take();
      pool_.Schedule([done = std::move(done)] { done(absl::OkStatus()); });
    });
  }
  SetProgram(AsyncCount());
  ExpectInEveryOrder({50}, {50});
}

TEST_F(RunProgramTest, AsynchronousKernelsKeepTheirInputsUntilTheyEnd) {
  StaticGraph graph;
  graph.Arg("x").Kernel("slow", {"x"}).Retval("slow");
  FakeRunner::Done release;
  KernelCall* held = nullptr;
  runner_.OnAsync("slow", [&](KernelCall* call, FakeRunner::Done done) {
    held = call;
    release = std::move(done);
  });
  SetProgram(graph);
  PendingRun run;
  run.Start(Environment(), {live_.Make(3)});
  EXPECT_FALSE(run.has_ended());
  EXPECT_EQ(LiveTensors::Number(held->inputs[0]), 3);
  held->outputs[0] = live_.Make(4);
  release(absl::OkStatus());
  EXPECT_EQ(run.Wait().Numbers(), std::vector<int>{4});
  EXPECT_EQ(live_.count(), 0);
}

// --- Threads --------------------------------------------------------------------------------------

// Two workers on a pool of two threads would keep everything else in the process waiting.
TEST_F(RunProgramTest, LeavesThePoolsThreadsToOthersAfterItsSlice) {
  const StaticGraph graph = FibGraph();
  SetProgram(graph);
  ThreadPool pool(2);
  SmallStackThreads threads;
  std::atomic<int> started = 0;
  std::atomic<bool> is_cancelled = false;
  RunEnvironment environment = Environment();
  environment.max_workers = 2;
  environment.slice = absl::ZeroDuration();
  environment.schedule = [&](std::function<void()> work) { pool.Schedule(std::move(work)); };
  environment.start_thread = [&](std::function<void()> work) {
    ++started;
    threads.Schedule(std::move(work));
  };
  environment.is_cancelled = [&] { return is_cancelled.load(); };
  PendingRun run;
  pool.Schedule([&] { run.Start(environment, Numbers({45})); });  // minutes of work
  absl::BlockingCounter others(20);
  for (int i = 0; i < 20; ++i) {
    pool.Schedule([&] { others.DecrementCount(); });
  }
  others.Wait();
  while (started < 2) absl::SleepFor(absl::Milliseconds(1));
  is_cancelled = true;
  EXPECT_EQ(run.Wait().status.code(), absl::StatusCode::kCancelled);
}

TEST_F(RunProgramTest, GivesTheSameResultsWhenItChangesThreads) {
  const StaticGraph graph = FibGraph();
  SetProgram(graph);
  for (int max_workers : {1, 4}) {
    RunEnvironment environment = Environment();
    environment.max_workers = max_workers;
    environment.slice = absl::ZeroDuration();
    environment.start_thread = environment.schedule;
    EXPECT_EQ(RunToEnd(environment, Numbers({18})).Numbers(), std::vector<int>{2584});
  }
}

}  // namespace
}  // namespace tensorflow_recursion
