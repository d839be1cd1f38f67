// Runs that end early: by an error, a limit or cancellation.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "tests/cc/executor/run_program_fixture.h"
#include "tests/cc/values/numbers.h"
#include "tests/cc/values/small_stack_threads.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_BOOL;

// --- Errors ---------------------------------------------------------------------------------------

TEST_F(RunProgramTest, AnErrorNamesThePathOfCalls) {
  StaticGraph graph = AsyncCount();
  runner_.On("F/down", [](KernelCall* call) {
    if (call->inputs[0].int32 == 0) return absl::InternalError("broken");
    call->outputs[0] = call->inputs[0].Take();
    return absl::OkStatus();
  });
  SetProgram(graph);
  ExpectError(RunWith(Numbers({100})), absl::StatusCode::kInternal,
              {"broken", "in call F > F > F > (94 more) > F > F > F"});
}

TEST_F(RunProgramTest, AnErrorOfAFallbackEndsTheRun) {
  StaticGraph graph;
  graph.Arg("x").Arg("y", 1).Op("quotient", "FloorDiv", {"x", "y"}).Retval("quotient");
  SetProgram(graph);
  EXPECT_EQ(RunWith(Numbers({7, 2})).Numbers(), std::vector<int>{3});
  EXPECT_EQ(runner_.runs("quotient"), 0);
  ExpectError(RunWith(Numbers({7, 0})), absl::StatusCode::kInvalidArgument, {"division by zero"});
}

TEST_F(RunProgramTest, TheFirstErrorWins) {
  StaticGraph graph;
  graph.Arg("x").Kernel("first", {"x"}).Kernel("second", {"x"}).Retval("first").Retval("second", 1);
  std::vector<FakeRunner::Done> done(2);
  for (const int i : {0, 1}) {
    runner_.OnAsync(i == 0 ? "first" : "second",
                    [&done, i](KernelCall*, FakeRunner::Done d) { done[i] = std::move(d); });
  }
  SetProgram(graph);
  RunEnvironment environment = Environment();
  absl::Notification failed;
  std::atomic<int> told{0};
  environment.on_error = [&](const absl::Status& status) {
    EXPECT_EQ(status.message(), "one");
    ++told;
    failed.Notify();
  };
  PendingRun run;
  run.Start(environment, {live_.Make(1)});
  done[1](absl::InternalError("one"));
  failed.WaitForNotification();
  EXPECT_FALSE(run.has_ended());  // a kernel is still in flight
  done[0](absl::UnavailableError("two"));
  ExpectError(run.Wait(), absl::StatusCode::kInternal, {"one"});
  EXPECT_EQ(told, 1);
}

TEST_F(RunProgramTest, AnErrorReleasesEveryFrameAndTensor) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  AddRepeat(&graph);
  std::atomic<int> calls{0};
  runner_.On("F/add", [&](KernelCall* call) {
    if (++calls == 10) return absl::InternalError("broken");
    call->outputs[0] = live_.Make(1);
    return absl::OkStatus();
  });
  SetProgram(graph);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("shuffle_seed ", seed));
    calls = 0;
    ExpectError(RunWith({Number(40), live_.Make(1)}, seed), absl::StatusCode::kInternal, {"broken"});
  }
}

TEST_F(RunProgramTest, AMissingOutputIsAnError) {
  StaticGraph graph;
  graph.Arg("x").Kernel("k", {"x"}, 3).Retval("k:1");
  runner_.On("k", [this](KernelCall* call) {
    call->outputs[0] = live_.Make(1);
    call->outputs[2] = live_.Make(2);
    return absl::OkStatus();
  });
  SetProgram(graph);
  ExpectError(RunWith({live_.Make(1)}), absl::StatusCode::kInternal, {"Missing output 1", "{{node k}}"});
}

TEST_F(RunProgramTest, APredicateThatIsNoScalarIsAnError) {
  StaticGraph graph;
  graph.Arg("x").Arg("p", 1, DT_BOOL).Op("switch", "Switch", {"x", "p"}).Retval("switch");
  SetProgram(graph);
  auto* predicate = new tensorflow::Tensor(DT_BOOL, tensorflow::TensorShape({2}));
  ExpectError(RunWith({live_.Make(1), Value::Own(predicate)}), absl::StatusCode::kInvalidArgument,
              {"predicate", "scalar bool", "[2]", "{{node switch}}"});
}

// --- Limits ---------------------------------------------------------------------------------------

TEST_F(RunProgramTest, TooDeepARecursionIsAnError) {
  SetProgram(Endless(100));
  ExpectError(RunWith({Number(0), live_.Make(1)}), absl::StatusCode::kResourceExhausted,
              {"Recursion too deep: call of 'F' would be at depth 101, the limit is 100", "max_depth", "{{node F/",
               "in call F > F > F > (94 more) > F > F > F"});
}

TEST_F(RunProgramTest, DepthsUpToTheLimitAreFine) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"n"}, 1).Result("F", "F/n");
  SetProgram(graph);
  EXPECT_EQ(RunWith(Numbers({3})).Numbers(), std::vector<int>{3});
}

TEST_F(RunProgramTest, TooDeepARecursionOnSeveralWorkersLeavesNothingBehind) {
  SetProgram(Endless(1000));
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("shuffle_seed ", seed));
    RunEnvironment environment = Environment(seed);
    environment.max_workers = 4;
    ExpectError(RunToEnd(environment, {Number(0), live_.Make(1)}), absl::StatusCode::kResourceExhausted,
                {"depth 1001"});
  }
}

// What is available to runs that take FakeMemory's: 100 MiB less at each look.
std::atomic<int64_t> fake_memory{0};

MemoryGauge FakeMemory() {
  fake_memory = int64_t{2000} << 20;
  MemoryGauge gauge;
  gauge.available = [] { return fake_memory -= int64_t{100} << 20; };
  gauge.reserve = int64_t{512} << 20;
  gauge.interval = gauge.near_interval = absl::ZeroDuration();
  return gauge;
}

TEST_F(RunProgramTest, ARecursionThatTakesTheLastMemoryIsAnError) {
  SetProgram(Endless(/*max_depth=*/10'000'000));
  for (const int workers : {1, 4}) {
    RunEnvironment environment = Environment();
    environment.max_workers = workers;
    environment.memory = FakeMemory();
    ExpectError(RunToEnd(environment, {Number(1), live_.Make(1)}), absl::StatusCode::kResourceExhausted,
                {"Recursion too deep for the memory: call of 'F' would be at depth ", ", but the machine has ",
                 " MiB of memory left, and 512 MiB have to stay free", "TENSORFLOW_RECURSION_MEMORY_RESERVE",
                 "{{node F/", "in call F > F"});
  }
}

// The call that is one too deep has been given to another worker.
TEST_F(RunProgramTest, TooDeepACallGivenAwayReleasesItsArguments) {
  StaticGraph graph;
  graph.Arg("x").Call("main", "F", 1, {"x"}).Retval("main/return_0");
  graph.Function("F", {"x"}, 1).Kernel("F/warm", {"F/x"});
  graph.Call("F/a", "F", 2, {"F/warm"}).Call("F/b", "F", 3, {"F/warm"});
  graph.Op("F/sum", "AddV2", {"F/a/return_0", "F/b/return_0"}).Result("F", "F/sum");
  runner_.On(
      "F/warm",
      [](KernelCall* call) {
        call->outputs[0] = call->inputs[0].Take().Escape();
        return absl::OkStatus();
      },
      KernelRunner::Cost::kExpensive);
  SetProgram(graph);
  RunEnvironment environment = Environment();
  environment.max_workers = 2;
  SmallStackThreads threads;
  // The call is opened elsewhere before this worker goes on.
  environment.schedule = [&](const std::function<void()>& work) {
    auto ended = std::make_shared<std::promise<void>>();
    threads.Schedule([work, ended] {
      work();
      ended->set_value();
    });
    ended->get_future().wait();
  };
  ExpectError(RunToEnd(environment, {live_.Make(1)}), absl::StatusCode::kResourceExhausted, {"depth 2"});
}

// --- Cancellation ---------------------------------------------------------------------------------

TEST_F(RunProgramTest, CancellationEndsARecursionWithoutEnd) {
  SetProgram(Endless(int64_t{1} << 40));
  for (const int workers : {1, 4}) {
    RunEnvironment environment = Environment();
    environment.max_workers = workers;
    std::atomic<int> polls{0};
    environment.is_cancelled = [&polls] { return ++polls > 20; };
    ExpectError(RunToEnd(environment, {Number(0), live_.Make(1)}), absl::StatusCode::kCancelled, {"cancelled"});
  }
}

TEST_F(RunProgramTest, CancellationWaitsForKernelsInFlight) {
  StaticGraph graph = Endless(int64_t{1} << 40);
  graph.Kernel("slow", {"x1"}).Retval("slow", 1);
  FakeRunner::Done release;
  runner_.OnAsync("slow", [&](KernelCall* call, FakeRunner::Done done) {
    call->outputs[0] = live_.Make(2);
    release = std::move(done);
  });
  SetProgram(graph);
  RunEnvironment environment = Environment();
  std::atomic<int> polls{0};
  environment.is_cancelled = [&polls] { return ++polls > 20; };
  PendingRun run;
  run.Start(environment, {Number(0), live_.Make(1)});  // returns when the worker has stopped
  EXPECT_FALSE(run.has_ended());
  release(absl::OkStatus());
  ExpectError(run.Wait(), absl::StatusCode::kCancelled, {"cancelled"});
}

}  // namespace
}  // namespace tensorflow_recursion
