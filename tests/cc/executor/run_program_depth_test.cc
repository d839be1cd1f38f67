// Depth is heap, not stack.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <future>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cc/executor/run_program_fixture.h"
#include "tests/cc/values/numbers.h"
#include "tests/cc/values/small_stack_threads.h"

namespace tensorflow_recursion {
namespace {

class DeepRecursionTest : public RunProgramTest {
 protected:
  // Runs on threads whose stack would hold a few hundred bytes for a thousandth of the calls.
  Outcome RunOnSmallStacks(std::vector<Value> arguments, uint64_t seed = 0) {
    SmallStackThreads threads;
    RunEnvironment environment = Environment(seed);
    environment.schedule = [&threads](std::function<void()> work) { threads.Schedule(std::move(work)); };
    PendingRun run;
    threads.Schedule([&] { run.Start(environment, std::move(arguments)); });
    return run.Wait();
  }
};

// F(n) = 0 if n < 1 else F(n - 1) + 1
TEST_F(DeepRecursionTest, CountsToAMillion) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"n"}, kDeep + 1).Const("F/one", 1, {"^F/frame_start"}).Op("F/less", "Less", {"F/n", "F/one"});
  graph.Op("F/switch", "Switch", {"F/n", "F/less"}).Op("F/n1", "Sub", {"F/switch", "F/one"});
  graph.Call("F/call", "F", 2, {"F/n1"}).Op("F/sum", "AddV2", {"F/call/return_0", "F/one"});
  Merge(&graph, "F/merge", {"F/sum", "F/switch:1"}).Result("F", "F/merge");
  SetProgram(graph);
  EXPECT_EQ(RunOnSmallStacks(Numbers({kDeep - 1})).Numbers(), std::vector<int>{kDeep - 1});
  EXPECT_EQ(RunOnSmallStacks(Numbers({kDeep / 10}), 1).Numbers(), std::vector<int>{kDeep / 10});
}

// F(n) = 7 if n < 1 else F(n - 1): a million Returns pass one value up.
TEST_F(DeepRecursionTest, ReturnsFromAMillionTailCalls) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"n"}, kDeep + 1).Const("F/one", 1, {"^F/frame_start"}).Op("F/less", "Less", {"F/n", "F/one"});
  graph.Op("F/switch", "Switch", {"F/n", "F/less"}).Op("F/n1", "Sub", {"F/switch", "F/one"});
  graph.Call("F/call", "F", 2, {"F/n1"}).Const("F/seven", 7, {"^F/pivot"}).Op("F/pivot", "Identity", {"F/switch:1"});
  Merge(&graph, "F/merge", {"F/call/return_0", "F/seven"}).Result("F", "F/merge");
  SetProgram(graph);
  EXPECT_EQ(RunOnSmallStacks(Numbers({kDeep - 1})).Numbers(), std::vector<int>{7});
}

// F(n) never returns a value: a million Returns pass the death up.
TEST_F(DeepRecursionTest, PassesADeathUpAMillionCalls) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"n"}, kDeep + 1).Const("F/one", 1, {"^F/frame_start"}).Op("F/less", "Less", {"F/n", "F/one"});
  graph.Op("F/switch", "Switch", {"F/n", "F/less"}).Op("F/n1", "Sub", {"F/switch", "F/one"});
  graph.Call("F/call", "F", 2, {"F/n1"}).Op("F/result", "Neg", {"F/call/return_0"}).Result("F", "F/result");
  SetProgram(graph);
  EXPECT_EQ(RunOnSmallStacks(Numbers({kDeep - 1})).Numbers(), std::vector<int>{Outcome::kDead});
}

// F(n, x) = bottom(x) if n < 1 else F(n - 1, x), where x comes when all frames are open. It comes of a side effect, so
// no call waits for it though it never changes.
void AddLateChain(StaticGraph* graph) {
  graph->Arg("x0")
      .Kernel("late", {"x0"}, 1, /*is_stateful=*/true)
      .Call("main", "F", 1, {"x0", "late"})
      .Retval("main/return_0");
  graph->Function("F", {"n", "x"}, kDeep + 1)
      .Const("F/one", 1, {"^F/frame_start"})
      .Op("F/less", "Less", {"F/n", "F/one"});
  graph->Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/sx", "Switch", {"F/x", "F/less"});
  graph->Op("F/n1", "Sub", {"F/sn", "F/one"}).Call("F/call", "F", 2, {"F/n1", "F/sx"});
  graph->Kernel("F/bottom", {"F/sn:1"}, 0, true);
  Merge(graph, "F/merge", {"F/call/return_0", "F/sx:1"}).Result("F", "F/merge");
}

TEST_F(DeepRecursionTest, PassesALateArgumentDownAMillionOpenFrames) {
  StaticGraph graph;
  AddLateChain(&graph);
  for (const bool is_boxed : {false, true}) {
    FakeRunner::Done release;
    std::promise<void> bottom;
    runner_.OnAsync("late", [&](KernelCall* call, FakeRunner::Done done) {
      call->outputs[0] = is_boxed ? live_.Make(42) : Number(42);
      release = std::move(done);
    });
    runner_.On("F/bottom", [&](KernelCall*) {
      bottom.set_value();
      return absl::OkStatus();
    });
    SetProgram(graph);
    SmallStackThreads threads;
    RunEnvironment environment = Environment();
    environment.schedule = [&threads](std::function<void()> work) { threads.Schedule(std::move(work)); };
    PendingRun run;
    threads.Schedule([&] { run.Start(environment, Numbers({kDeep - 1})); });
    bottom.get_future().wait();
    threads.Schedule([&] { release(absl::OkStatus()); });
    Outcome outcome = run.Wait();
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.Numbers(), std::vector<int>{42});
    outcome.Release();
    EXPECT_EQ(live_.count(), 0);
  }
}

// The error is found a million calls deep; the way out is as flat as the way in.
TEST_F(DeepRecursionTest, EndsAMillionFramesAfterAnError) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  AddRepeat(&graph);
  graph.Function("G", {"x"}, kDeep + 10).Result("G", "G/x");
  runner_.On("F/base", [](KernelCall*) { return absl::InternalError("broken"); });
  built_ = Build(graph);
  ASSERT_TRUE(built_.status.ok()) << built_.status;
  built_.program->options.max_depth = kDeep + 10;
  const Outcome outcome = RunOnSmallStacks({Number(kDeep - 1), live_.Make(1)});
  ExpectError(outcome, absl::StatusCode::kInternal, {"broken", absl::StrCat("(", kDeep - 6, " more)")});
}

}  // namespace
}  // namespace tensorflow_recursion
