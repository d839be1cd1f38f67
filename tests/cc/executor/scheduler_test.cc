// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "tensorflow/core/lib/core/threadpool.h"
#include "tensorflow/core/platform/env.h"
#include "tests/cc/executor/fake_runner.h"
#include "tests/cc/executor/test_graphs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_BOOL;

constexpr uint64_t kSeeds = 40;
constexpr int kDeep = 1'000'000;

// Names nodes of a function: in("x") is "F/x".
std::function<std::string(const std::string&)> NamesIn(const std::string& function) {
  return [function](const std::string& node) { return absl::StrCat(function, "/", node); };
}

class SchedulerTest : public ::testing::Test {
 protected:
  void SetProgram(const StaticGraph& graph) {
    built_ = Build(graph);
    ASSERT_TRUE(built_.status.ok()) << built_.status;
  }

  RunEnvironment Environment(uint64_t seed = 0) {
    RunEnvironment environment;
    environment.program = built_.program.get();
    environment.runner = &runner_;
    environment.schedule = [this](std::function<void()> work) { pool_.Schedule(std::move(work)); };
    environment.shuffle_seed = seed;
    return environment;
  }

  Outcome RunWith(std::vector<Value> arguments, uint64_t seed = 0) {
    return RunToEnd(Environment(seed), std::move(arguments));
  }

  // The results are the same newest first, in any order, by kernels alone, and on several workers.
  void ExpectInEveryOrder(const std::vector<int>& arguments, const std::vector<int>& expected) {
    auto expect = [&](RunEnvironment environment) {
      const Outcome outcome = RunToEnd(environment, Numbers(arguments));
      EXPECT_TRUE(outcome.status.ok()) << outcome.status;
      EXPECT_EQ(outcome.Numbers(), expected);
    };
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE(absl::StrCat("shuffle_seed ", seed));
      RunEnvironment environment = Environment(seed);
      expect(environment);
      environment.max_workers = 4;
      expect(environment);
    }
    RunEnvironment traced = Environment();
    traced.trace = true;
    expect(traced);
  }

  void ExpectError(const Outcome& outcome, absl::StatusCode code, const std::vector<std::string>& texts) {
    EXPECT_EQ(outcome.status.code(), code) << outcome.status;
    for (const std::string& text : texts)
      EXPECT_TRUE(absl::StrContains(outcome.status.message(), text)) << outcome.status;
    EXPECT_TRUE(outcome.retvals.empty());
    EXPECT_EQ(live_.count(), 0);
  }

  LiveTensors live_;
  BuiltProgram built_;
  FakeRunner runner_;
  tensorflow::thread::ThreadPool pool_{tensorflow::Env::Default(), "scheduler_test", 4};
};

// --- Programs -------------------------------------------------------------------------------------

TEST_F(SchedulerTest, RunsAGraphWithoutCalls) {
  StaticGraph graph;
  graph.Arg("x").Const("two", 2).Op("y", "Mul", {"x", "two"}).Retval("y").Retval("x", 1).Retval("two", 2);
  SetProgram(graph);
  ExpectInEveryOrder({21}, {42, 21, 2});
}

// More than a pending count can hold.
TEST_F(SchedulerTest, WaitsForSeventyThousandControlInputs) {
  constexpr int kControls = 70'000;
  StaticGraph graph;
  graph.Arg("x");
  Inputs inputs = {"x"};
  for (int i = 0; i < kControls; ++i) {
    const std::string name = absl::StrCat("effect_", i);
    graph.Kernel(name, {"x"}, 0, true);
    inputs.push_back("^" + name);
  }
  graph.Op("y", "Identity", inputs).Retval("y");
  SetProgram(graph);
  EXPECT_EQ(RunWith(Numbers({21})).Numbers(), std::vector<int>{21});
  EXPECT_EQ(runner_.runs("effect_0"), 1);
  EXPECT_EQ(runner_.runs(absl::StrCat("effect_", kControls - 1)), 1);
}

// Else an endless recursion could keep them from ever running, by the order of the nodes.
TEST_F(SchedulerTest, RunsOperatorsOfTheMainGraphBeforeACallOfConstants) {
  int effects = 0;
  int effects_before_call = 0;
  runner_.On("effect", [&](KernelCall*) {
    ++effects;
    return absl::OkStatus();
  });
  runner_.On("F/y", [&](KernelCall* call) {
    effects_before_call += effects;
    call->outputs[0] = call->inputs[0].Take();
    return absl::OkStatus();
  });
  for (bool call_first : {false, true}) {
    StaticGraph graph;
    graph.Function("F", {"x"}).Kernel("F/y", {"F/x"}).Result("F", "F/y").Const("one", 1);
    if (call_first) graph.Call("main", "F", 1, {"one"});
    graph.Kernel("effect", {}, 0, true);
    if (!call_first) graph.Call("main", "F", 1, {"one"});
    graph.Retval("main/return_0");
    SetProgram(graph);
    effects = effects_before_call = 0;
    EXPECT_EQ(RunWith({}).Numbers(), std::vector<int>{1});
    EXPECT_EQ(effects_before_call, 1) << "call_first " << call_first;
  }
}

TEST_F(SchedulerTest, ReleasesArgumentsThatNobodyReads) {
  StaticGraph graph;
  graph.Arg("x").Arg("y", 1).Retval("x");
  SetProgram(graph);
  {
    const Outcome outcome = RunWith({live_.Make(1), live_.Make(2)});
    EXPECT_EQ(outcome.Numbers(), std::vector<int>{1});
    EXPECT_EQ(live_.count(), 1);
  }
  EXPECT_EQ(live_.count(), 0);
}

TEST_F(SchedulerTest, ComputesFib) {
  StaticGraph graph;
  AddMain(&graph, "Fib", 1);
  AddFib(&graph, 2);
  SetProgram(graph);
  ExpectInEveryOrder({0}, {0});
  ExpectInEveryOrder({1}, {1});
  ExpectInEveryOrder({13}, {233});
}

// ack(m, n) = n + 1 if m = 0; ack(m - 1, 1) if n = 0; else ack(m - 1, ack(m, n - 1))
TEST_F(SchedulerTest, ComputesAckermann) {
  StaticGraph graph;
  AddMain(&graph, "A", 2);
  graph.Function("A", {"m", "n"}).Const("A/zero", 0, {"^A/trigger"}).Const("A/one", 1, {"^A/trigger"});
  graph.Op("A/m_is_0", "Equal", {"A/m", "A/zero"});
  graph.Op("A/sm", "Switch", {"A/m", "A/m_is_0"}).Op("A/sn", "Switch", {"A/n", "A/m_is_0"});
  graph.Op("A/n_plus_1", "AddV2", {"A/sn:1", "A/one"});
  graph.Op("A/n_is_0", "Equal", {"A/sn", "A/zero"}).Op("A/m_minus_1", "Sub", {"A/sm", "A/one"});
  graph.Op("A/sm1", "Switch", {"A/m_minus_1", "A/n_is_0"}).Op("A/sm_again", "Switch", {"A/sm", "A/n_is_0"});
  graph.Op("A/sn_again", "Switch", {"A/sn", "A/n_is_0"}).Const("A/start", 1, {"^A/pivot"});
  graph.Op("A/pivot", "Identity", {"A/sm1:1"}).Call("A/c0", "A", 2, {"A/sm1:1", "A/start"});
  graph.Op("A/n_minus_1", "Sub", {"A/sn_again", "A/one"}).Call("A/c1", "A", 3, {"A/sm_again", "A/n_minus_1"});
  graph.Call("A/c2", "A", 4, {"A/sm1", "A/c1/return_0"});
  Merge(&graph, "A/inner", {"A/c2/return_0", "A/c0/return_0"});
  Merge(&graph, "A/outer", {"A/inner", "A/n_plus_1"}).Result("A", "A/outer");
  SetProgram(graph);
  ExpectInEveryOrder({2, 3}, {9});
  ExpectInEveryOrder({1, 0}, {2});
}

// even(n) = n = 0 or odd(n - 1), odd(n) = n != 0 and even(n - 1)
TEST_F(SchedulerTest, ComputesMutualRecursion) {
  StaticGraph graph;
  AddMain(&graph, "Even", 1);
  for (const auto& [name, other, at_zero, id] : {std::tuple("Even", "Odd", 1, 2), std::tuple("Odd", "Even", 0, 3)}) {
    const auto in = NamesIn(name);
    graph.Function(name, {"n"}).Const(in("zero"), 0, {"^" + in("trigger")}).Const(in("one"), 1, {"^" + in("trigger")});
    graph.Op(in("done"), "Equal", {in("n"), in("zero")}).Op(in("switch"), "Switch", {in("n"), in("done")});
    graph.Op(in("less"), "Sub", {in("switch"), in("one")}).Call(in("call"), other, id, {in("less")});
    graph.Op(in("pivot"), "Identity", {in("switch:1")}).Const(in("answer"), at_zero, {"^" + in("pivot")});
    Merge(&graph, in("merge"), {in("call/return_0"), in("answer")}).Result(name, in("merge"));
  }
  SetProgram(graph);
  ExpectInEveryOrder({20}, {1});
  ExpectInEveryOrder({21}, {0});
}

TEST_F(SchedulerTest, CallsFromLoops) {
  StaticGraph graph;
  graph.Arg("n");
  AddSumOfFibs(&graph, "", "n", {}, 1).Retval("exit");
  AddFib(&graph, 2);
  SetProgram(graph);
  ExpectInEveryOrder({0}, {0});
  ExpectInEveryOrder({8}, {0 + 1 + 1 + 2 + 3 + 5 + 8 + 13});
}

TEST_F(SchedulerTest, LoopsInBodies) {
  StaticGraph graph;
  graph.Arg("x0").Call("a", "F", 1, {"x0"}).Call("b", "F", 10, {"a/return_0"}).Retval("b/return_0");
  graph.Function("F", {"n"});
  AddSumOfFibs(&graph, "F/", "F/n", {"^F/trigger"}, 2).Result("F", "F/exit");
  AddFib(&graph, 3);
  SetProgram(graph);
  ExpectInEveryOrder({4}, {0 + 1 + 1 + 2});              // F(4)
  ExpectInEveryOrder({5}, {0 + 1 + 1 + 2 + 3 + 5 + 8});  // F(7)
}

TEST_F(SchedulerTest, LoopsCarryTensors) {
  StaticGraph graph;
  graph.Arg("n").Arg("t", 1).Const("zero", 0).Enter("enter_i", "zero", "loop").Enter("enter_n", "n", "loop", true);
  graph.Enter("enter_t", "t", "loop").Enter("weights", "t", "loop", true);
  Merge(&graph, "i", {"enter_i", "next_i"});
  Merge(&graph, "v", {"enter_t", "next_v"});
  graph.Op("less", "Less", {"i", "enter_n"}).Node("cond", "LoopCond", {"less"});
  graph.Op("switch_i", "Switch", {"i", "cond"}).Op("switch_v", "Switch", {"v", "cond"}).Const("one", 1, {"^switch_i"});
  graph.Op("add", "AddV2", {"switch_i:1", "one"}).Op("next_i", "NextIteration", {"add"});
  graph.Kernel("step", {"switch_v:1", "weights"}).Op("next_v", "NextIteration", {"step"});
  graph.Op("exit", "Exit", {"switch_v"}).Retval("exit");
  runner_.On("step", [this](KernelCall* call) {
    call->outputs[0] = live_.Make(LiveTensors::Number(call->inputs[0]) + LiveTensors::Number(call->inputs[1]));
    return absl::OkStatus();
  });
  SetProgram(graph);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("shuffle_seed ", seed));
    Outcome outcome = RunWith({Number(10), live_.Make(3)}, seed);
    EXPECT_EQ(outcome.Numbers(), std::vector<int>{33});
    outcome.Release();
    EXPECT_EQ(live_.count(), 0);
  }
  EXPECT_LT(live_.most(), 6);  // iterations go as soon as they are done
}

// Stock optimizers merge nodes that are the same: of two loop variables with one new value, first their
// NextIterations.
TEST_F(SchedulerTest, LoopVariablesMayShareTheirNextIteration) {
  StaticGraph graph;
  graph.Arg("n").Arg("t", 1).Const("zero", 0).Enter("enter_i", "zero", "loop").Enter("enter_n", "n", "loop", true);
  graph.Enter("enter_t", "t", "loop");
  Merge(&graph, "i", {"enter_i", "next_i"});
  for (const char* name : {"a", "b", "c"}) Merge(&graph, name, {"enter_t", "next"});
  graph.Op("less", "Less", {"i", "enter_n"}).Node("cond", "LoopCond", {"less"}).Op("switch_i", "Switch", {"i", "cond"});
  graph.Const("one", 1, {"^switch_i"}).Op("add", "AddV2", {"switch_i:1", "one"}).Op("next_i", "NextIteration", {"add"});
  for (const char* name : {"a", "b", "c"}) {
    graph.Op(absl::StrCat("switch_", name), "Switch", {name, "cond"});
    graph.Op(absl::StrCat("exit_", name), "Exit", {absl::StrCat("switch_", name)});
  }
  graph.Kernel("step", {"switch_c:1"}).Op("next", "NextIteration", {"step"});
  graph.Retval("exit_a").Retval("exit_b", 1).Retval("exit_c", 2).Retval("step_count", 3);
  graph.Op("step_count", "Exit", {"switch_i"});
  runner_.On("step", [this](KernelCall* call) {
    call->outputs[0] = live_.Make(LiveTensors::Number(call->inputs[0]) + 1);
    return absl::OkStatus();
  });
  SetProgram(graph);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("shuffle_seed ", seed));
    Outcome outcome = RunWith({Number(4), live_.Make(3)}, seed);
    EXPECT_EQ(outcome.Numbers(), (std::vector<int>{7, 7, 7, 4}));
    outcome.Release();
    EXPECT_EQ(live_.count(), 0);
  }
}

// --- Values passed on -----------------------------------------------------------------------------

// F(x) = x, x, x; G(x) sends each result of F to several readers of each kind.
TEST_F(SchedulerTest, OneValueHasReadersOfEveryKind) {
  StaticGraph graph;
  AddMain(&graph, "G", 1, 3);
  graph.Function("F", {"x"}).Result("F", "F/x", 0).Result("F", "F/x", 1).Result("F", "F/x", 2);
  graph.Function("G", {"x"}).Const("G/true", true, {"^G/trigger"}).Call("G/f", "F", 2, {"G/x"}, 3);
  graph.Op("G/gate", "Switch", {"G/f/return_0", "G/true"}).Kernel("G/kernel", {"G/f/return_0"});
  Merge(&graph, "G/merge", {"G/f/return_0", "G/gate"});
  graph.Call("G/again", "F", 3, {"G/f/return_0"}, 2);
  graph.Op("G/sum", "AddV2", {"G/again/return_1", "G/kernel"}).Op("G/all", "AddV2", {"G/sum", "G/gate:1"});
  graph.Result("G", "G/f/return_0", 0).Result("G", "G/all", 1).Result("G", "G/merge", 2);
  SetProgram(graph);
  ExpectInEveryOrder({5}, {5, 15, 5});
}

TEST_F(SchedulerTest, TensorsGoWithTheirLastReader) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"x"}).Kernel("F/a", {"F/x"}).Kernel("F/b", {"F/a"}).Kernel("F/c", {"F/b"}).Result("F", "F/c");
  for (const char* node : {"F/a", "F/b", "F/c"}) {
    runner_.On(node, [this](KernelCall* call) {
      EXPECT_EQ(live_.count(), 1);  // what came before is gone
      call->outputs[0] = live_.Make(LiveTensors::Number(call->inputs[0]) + 1);
      return absl::OkStatus();
    });
  }
  SetProgram(graph);
  EXPECT_EQ(RunWith({live_.Make(0)}).Numbers(), std::vector<int>{3});
  EXPECT_EQ(live_.count(), 0);
}

// F(n, t) = t + ... + t, n times: t is handed down unchanged and read on the way up.
void AddRepeat(StaticGraph* graph) {
  const Inputs trigger = {"^F/trigger"};
  graph->Function("F", {"n", "t"}).Const("F/one", 1, trigger).Op("F/less", "Less", {"F/n", "F/one"});
  graph->Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/st", "Switch", {"F/t", "F/less"});
  graph->Op("F/n1", "Sub", {"F/sn", "F/one"}).Call("F/call", "F", 2, {"F/n1", "F/st"});
  graph->Kernel("F/add", {"F/call/return_0", "F/st"}).Kernel("F/base", {"F/st:1"});
  Merge(graph, "F/merge", {"F/add", "F/base"}).Result("F", "F/merge");
}

TEST_F(SchedulerTest, HandsTensorsDownTheRecursion) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  AddRepeat(&graph);
  runner_.On("F/add", [this](KernelCall* call) {
    call->outputs[0] = live_.Make(LiveTensors::Number(call->inputs[0]) + LiveTensors::Number(call->inputs[1]));
    return absl::OkStatus();
  });
  SetProgram(graph);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (const int workers : {1, 3}) {
      SCOPED_TRACE(absl::StrCat("shuffle_seed ", seed, ", workers ", workers));
      RunEnvironment environment = Environment(seed);
      environment.max_workers = workers;
      Outcome outcome = RunToEnd(environment, {Number(20), live_.Make(3)});
      EXPECT_EQ(outcome.Numbers(), std::vector<int>{63});
      outcome.Release();
      EXPECT_EQ(live_.count(), 0);
    }
  }
}

TEST_F(SchedulerTest, SwitchesOfConstants) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"x"}).Const("F/two", 2, {"^F/trigger"}).Op("F/less", "Less", {"F/x", "F/two"});
  graph.Op("F/switch", "Switch", {"F/two", "F/less"}).Op("F/sum", "AddV2", {"F/switch:1", "F/switch:1"});
  Merge(&graph, "F/merge", {"F/switch", "F/sum"}).Result("F", "F/merge");
  SetProgram(graph);
  ExpectInEveryOrder({1}, {4});
  ExpectInEveryOrder({2}, {2});
}

// swap(a, b) hands its arguments back while it is being called, to an operator that shares slots with the call.
TEST_F(SchedulerTest, ArgumentsThatReturnAtOnceLeaveTheOthersAlone) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"a", "b"}).Kernel("F/k", {"F/a", "F/b"}, 2).Call("F/call", "Swap", 2, {"F/k", "F/k:1"}, 2);
  graph.Kernel("F/l", {"F/call/return_0", "F/call/return_1"}).Result("F", "F/l");
  graph.Function("Swap", {"a", "b"}).Result("Swap", "Swap/b", 0).Result("Swap", "Swap/a", 1);
  runner_.On("F/k", [](KernelCall* call) {
    call->outputs[0] = call->inputs[0].Take();
    call->outputs[1] = call->inputs[1].Take();
    return absl::OkStatus();
  });
  runner_.On("F/l", [this](KernelCall* call) {
    call->outputs[0] = live_.Make(10 * LiveTensors::Number(call->inputs[0]) + LiveTensors::Number(call->inputs[1]));
    return absl::OkStatus();
  });
  SetProgram(graph);
  for (const Region& region : built_->regions) {
    if (region.name == "F") ASSERT_EQ(region.num_slots, 2);
  }
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("shuffle_seed ", seed));
    Outcome outcome = RunWith({live_.Make(3), live_.Make(4)}, seed);
    EXPECT_EQ(outcome.Numbers(), std::vector<int>{43});
    outcome.Release();
    EXPECT_EQ(live_.count(), 0);
  }
}

// --- Partial invocation ---------------------------------------------------------------------------

// F(now, late) returns `now` at once; the kernel that makes `late` waits for that.
TEST_F(SchedulerTest, AnOutputReturnsBeforeArgumentsItDoesNotNeed) {
  StaticGraph graph;
  graph.Arg("x").Kernel("late", {"x"}).Call("main", "F", 1, {"x", "late"}, 2);
  graph.Kernel("seen", {"main/return_0"}).Retval("seen").Retval("main/return_1", 1);
  graph.Function("F", {"now", "late"}).Result("F", "F/now", 0).Result("F", "F/late", 1);
  FakeRunner::Done release;
  KernelCall* held = nullptr;
  runner_.OnAsync("late", [&](KernelCall* call, FakeRunner::Done done) {
    held = call;
    release = std::move(done);
  });
  runner_.On("seen", [&](KernelCall* call) {
    call->outputs[0] = call->inputs[0].Take();
    held->outputs[0] = Number(2);
    pool_.Schedule([done = std::move(release)] { done(absl::OkStatus()); });
    return absl::OkStatus();
  });
  SetProgram(graph);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("shuffle_seed ", seed));
    EXPECT_EQ(RunWith(Numbers({1}), seed).Numbers(), (std::vector<int>{1, 2}));
  }
}

// --- Dead calls -----------------------------------------------------------------------------------

TEST_F(SchedulerTest, ACallOfDeadArgumentsOpensNoFrame) {
  StaticGraph graph;
  graph.Arg("x").Const("no", false).Op("switch", "Switch", {"x", "no"});
  graph.Call("main", "F", 1, {"switch:1", "switch:1"}).Retval("main/return_0");
  graph.Function("F", {"a", "b"}).Const("F/c", 1, {"^F/trigger"}).Kernel("F/k", {"F/c"}, 1, true).Result("F", "F/k");
  SetProgram(graph);
  ExpectInEveryOrder({1}, {Outcome::kDead});
  EXPECT_EQ(runner_.runs("F/k"), 0);
}

TEST_F(SchedulerTest, ACallOfSomeDeadArgumentsRunsAsFarAsTheOthersGo) {
  StaticGraph graph;
  graph.Arg("x").Const("no", false).Op("switch", "Switch", {"x", "no"});
  graph.Call("main", "F", 1, {"x", "switch:1"}, 3);
  for (int i = 0; i < 3; ++i) graph.Retval(absl::StrCat("main/return_", i), i);
  graph.Function("F", {"a", "b"}).Op("F/sum", "AddV2", {"F/a", "F/b"});
  Merge(&graph, "F/merge", {"F/b", "F/a"});
  graph.Result("F", "F/a", 0).Result("F", "F/sum", 1).Result("F", "F/merge", 2);
  SetProgram(graph);
  ExpectInEveryOrder({7}, {7, Outcome::kDead, 7});
}

// A dead argument that is known before the other one must not open the frame by itself.
TEST_F(SchedulerTest, DeadArgumentsAloneOpenNoFrameWhileOthersAreAwaited) {
  StaticGraph graph;
  graph.Arg("x").Const("no", false).Op("switch", "Switch", {"x", "no"});
  graph.Kernel("slow", {"x"}).Const("zero", 0).Op("late_no", "Less", {"slow", "zero"});
  graph.Op("late_switch", "Switch", {"x", "late_no"});
  graph.Call("main", "F", 1, {"switch:1", "late_switch:1"}).Retval("main/return_0");
  graph.Function("F", {"a", "b"}).Const("F/c", 1, {"^F/trigger"}).Kernel("F/k", {"F/c"}, 1, true).Result("F", "F/k");
  FakeRunner::Done release;
  runner_.OnAsync("slow", [&](KernelCall* call, FakeRunner::Done done) {
    call->outputs[0] = Number(5);
    release = std::move(done);
  });
  SetProgram(graph);
  PendingRun run;
  run.Start(Environment(), Numbers({1}));  // returns when nothing is left to do but to wait
  release(absl::OkStatus());
  EXPECT_EQ(run.Wait().Numbers(), std::vector<int>{Outcome::kDead});
  EXPECT_EQ(runner_.runs("F/k"), 0);
}

// As before, but the second argument turns out to be live.
TEST_F(SchedulerTest, ALiveArgumentAfterADeadOneOpensTheFrame) {
  StaticGraph graph;
  graph.Arg("x").Const("no", false).Op("switch", "Switch", {"x", "no"}).Kernel("slow", {"x"});
  graph.Call("main", "F", 1, {"switch:1", "slow", "slower"}, 2).Kernel("slower", {"x"});
  graph.Retval("main/return_0").Retval("main/return_1", 1);
  graph.Function("F", {"a", "b", "c"}).Result("F", "F/b", 0);
  Merge(&graph, "F/merge", {"F/a", "F/c"}).Result("F", "F/merge", 1);
  std::vector<FakeRunner::Done> release(2);
  for (const int i : {0, 1}) {
    runner_.OnAsync(i == 0 ? "slow" : "slower", [&release, i](KernelCall* call, FakeRunner::Done done) {
      call->outputs[0] = Number(5 + i);
      release[i] = std::move(done);
    });
  }
  SetProgram(graph);
  for (const int first : {0, 1}) {
    PendingRun run;
    run.Start(Environment(), Numbers({1}));
    release[first](absl::OkStatus());
    release[1 - first](absl::OkStatus());
    EXPECT_EQ(run.Wait().Numbers(), (std::vector<int>{5, 6}));
  }
}

TEST_F(SchedulerTest, AConstantArgumentOfADeadBranchOpensNoFrame) {
  StaticGraph graph;
  graph.Arg("x").Const("no", false).Op("switch", "Switch", {"x", "no"}).Op("pivot", "Identity", {"switch:1"});
  graph.Node("control", "NoOp", {"^pivot"}).Const("c", 1, {"^control"});
  graph.Call("main", "F", 1, {"c"}).Retval("main/return_0");
  graph.Function("F", {"a"}).Kernel("F/k", {"F/a"}, 1, true).Result("F", "F/k");
  SetProgram(graph);
  ExpectInEveryOrder({1}, {Outcome::kDead});
  EXPECT_EQ(runner_.runs("F/k"), 0);
}

TEST_F(SchedulerTest, AMergeOfDeadInputsIsDead) {
  StaticGraph graph;
  graph.Arg("x").Const("no", false).Op("switch", "Switch", {"x", "no"});
  graph.Op("a", "Neg", {"switch:1"}).Op("b", "Neg", {"a"});
  Merge(&graph, "dead", {"a", "b"});
  Merge(&graph, "live", {"dead", "switch"}).Retval("dead").Retval("live", 1).Retval("live:1", 2);
  SetProgram(graph);
  ExpectInEveryOrder({4}, {Outcome::kDead, 4, 1});
}

TEST_F(SchedulerTest, MergesOfManyInputsCountTheirDeaths) {
  StaticGraph graph;
  graph.Arg("x").Const("no", false).Op("switch", "Switch", {"x", "no"});
  const Inputs many(130, "switch:1");
  Inputs but_one = many;
  but_one[77] = "switch";
  Merge(&graph, "dead", many);
  Merge(&graph, "live", but_one).Retval("dead").Retval("live", 1).Retval("live:1", 2);
  SetProgram(graph);
  ExpectInEveryOrder({4}, {Outcome::kDead, 4, 77});
}

TEST_F(SchedulerTest, AControlTriggerFiresAfterDeathsToo) {
  StaticGraph graph;
  graph.Arg("x").Arg("p", 1).Const("zero", 0).Op("outer_p", "Less", {"zero", "p"});
  graph.Op("outer", "Switch", {"x", "outer_p"}).Op("q", "Less", {"zero", "outer:1"});
  graph.Op("inner", "Switch", {"x", "q"});  // its data is live when its predicate is dead
  graph.Kernel("taken", {"inner:1"}).Kernel("not_taken", {"inner"});
  graph.Node("union", "ControlTrigger", {"^taken", "^not_taken"}).Const("one", 1, {"^union"}).Retval("one");
  SetProgram(graph);
  ExpectInEveryOrder({7, 1}, {1});  // one side lives
  ExpectInEveryOrder({7, 0}, {1});  // neither does
  ExpectInEveryOrder({-7, 1}, {1});
}

// What lowering makes of a conditional with an effect in one branch: the merge behind both waits for it.
TEST_F(SchedulerTest, AMergeWaitsForDeadControlsWithoutDying) {
  StaticGraph graph;
  graph.Arg("x").Arg("p", 1).Const("zero", 0).Op("pred", "Less", {"zero", "p"}).Op("switch", "Switch", {"x", "pred"});
  graph.Kernel("effect", {"switch:1"}, 1, true).Kernel("other", {"switch:1"}, 1, true);
  Merge(&graph, "done", {"switch", "switch:1", "^effect", "^other"});
  graph.Op("y", "Identity", {"x", "^done"}).Retval("y").Retval("done:1", 1);
  std::atomic<int> effects{0};
  const FakeRunner::Kernel count = [&](KernelCall* call) {
    ++effects;
    call->outputs[0] = call->inputs[0].Take();
    return absl::OkStatus();
  };
  runner_.On("effect", count).On("other", count);
  SetProgram(graph);
  ExpectInEveryOrder({7, 0}, {7, 0});
  EXPECT_EQ(effects, 0);
  ExpectInEveryOrder({7, 1}, {7, 1});
  EXPECT_EQ(effects, 2 * (2 * static_cast<int>(kSeeds) + 1));
}

TEST_F(SchedulerTest, AMergeComesAfterTheEffectsThatItWaitsFor) {
  StaticGraph graph;
  graph.Arg("x").Arg("p", 1).Const("zero", 0).Op("pred", "Less", {"zero", "p"}).Op("switch", "Switch", {"x", "pred"});
  graph.Kernel("effect", {"switch:1"}, 1, true);
  Merge(&graph, "done", {"switch", "switch:1", "^effect"});
  graph.Kernel("after", {"done"}, 1, true).Retval("after");
  std::atomic<int> effects{0};
  runner_.On("effect", [&](KernelCall* call) {
    effects = 1;
    call->outputs[0] = call->inputs[0].Take();
    return absl::OkStatus();
  });
  runner_.On("after", [&](KernelCall* call) {
    call->outputs[0] = Number(effects.exchange(0));
    return absl::OkStatus();
  });
  SetProgram(graph);
  ExpectInEveryOrder({7, 0}, {0});
  ExpectInEveryOrder({7, 1}, {1});
}

// A conditional in a branch, both with an effect, as the gradient of nested conditionals has them: the
// merge in the branch is dead with it.
TEST_F(SchedulerTest, AMergeInADeadBranchHoldsUpNoMergeOutside) {
  StaticGraph graph;
  AddMain(&graph, "F", 3);
  graph.Function("F", {"x", "p", "q"}).Const("F/zero", 0, {"^F/trigger"});
  graph.Op("F/outer_p", "Less", {"F/zero", "F/p"}).Op("F/inner_p", "Less", {"F/zero", "F/q"});
  graph.Op("F/outer", "Switch", {"F/x", "F/outer_p"}).Op("F/inner_p_in", "Switch", {"F/inner_p", "F/outer_p"}, DT_BOOL);
  graph.Op("F/inner", "Switch", {"F/outer:1", "F/inner_p_in:1"}).Kernel("F/effect", {"F/inner:1"}, 1, true);
  Merge(&graph, "F/inner_done", {"F/inner", "F/inner:1", "^F/effect"});
  Merge(&graph, "F/outer_done", {"F/outer", "F/outer:1", "^F/inner_done"});
  Merge(&graph, "F/inner_y", {"F/inner", "F/effect"});
  graph.Op("F/branch_y", "Identity", {"F/inner_y", "^F/inner_done"});
  Merge(&graph, "F/y", {"F/outer", "F/branch_y"});
  graph.Op("F/all", "Identity", {"F/y", "^F/outer_done"}).Result("F", "F/all");
  SetProgram(graph);
  ExpectInEveryOrder({7, 0, 0}, {7});
  ExpectInEveryOrder({7, 0, 1}, {7});
  ExpectInEveryOrder({7, 1, 0}, {7});
  EXPECT_EQ(runner_.runs("F/effect"), 0);
  ExpectInEveryOrder({7, 1, 1}, {7});
  EXPECT_EQ(runner_.runs("F/effect"), 2 * static_cast<int>(kSeeds) + 1);
}

TEST_F(SchedulerTest, KernelsMayLeaveAnOutputDead) {
  StaticGraph graph;
  graph.Arg("x").Node("recv", "_Recv", {"^x"},
                      {{"tensor_type", kInt},
                       {"tensor_name", "t"},
                       {"send_device", "a"},
                       {"send_device_incarnation", 1},
                       {"recv_device", "b"}});
  Merge(&graph, "merge", {"recv", "x"}).Retval("recv").Retval("merge", 1);
  runner_.On("recv", [](KernelCall*) { return absl::OkStatus(); });
  SetProgram(graph);
  ExpectInEveryOrder({3}, {Outcome::kDead, 3});
}

TEST_F(SchedulerTest, ACaseTakesTheLastBranchWhenItsIndexIsOutOfRange) {
  StaticGraph graph;
  graph.Arg("x").Arg("i", 1).Node("case", "_SwitchN", {"x", "i"}, {{"T", kInt}, {"num_outs", 3}});
  Merge(&graph, "merge", {"case", "case:1", "case:2"}).Retval("merge").Retval("merge:1", 1);
  SetProgram(graph);
  ExpectInEveryOrder({8, 0}, {8, 0});
  ExpectInEveryOrder({8, 1}, {8, 1});
  ExpectInEveryOrder({8, -1}, {8, 2});
  ExpectInEveryOrder({8, 3}, {8, 2});
}

TEST_F(SchedulerTest, EffectsComeBeforeWhatWaitsForThem) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"x"}).Kernel("F/effect", {"F/x"}, 0, true).Result("F", "F/x", 0, kInt, {"^F/after"});
  graph.Kernel("F/after", {"F/x", "^F/effect"}, 0, true);
  SetProgram(graph);
  std::atomic<int> effects{0};
  runner_.On("F/effect", [&](KernelCall*) {
    effects = 1;
    return absl::OkStatus();
  });
  runner_.On("F/after", [&](KernelCall*) {
    EXPECT_EQ(effects, 1);
    effects = 0;
    return absl::OkStatus();
  });
  ExpectInEveryOrder({5}, {5});
  EXPECT_EQ(runner_.runs("F/after"), 2 * static_cast<int>(kSeeds) + 1);
}

// --- Several workers ------------------------------------------------------------------------------

TEST_F(SchedulerTest, CallsSpreadOverWorkers) {
  StaticGraph graph;
  graph.Arg("x").Kernel("warm", {"x"}).Call("a", "F", 1, {"warm"}).Call("b", "F", 2, {"warm"});
  graph.Op("sum", "AddV2", {"a/return_0", "b/return_0"}).Retval("sum");
  graph.Function("F", {"x"}).Kernel("F/meet", {"F/x"}).Result("F", "F/meet");
  absl::Notification met[2];
  std::atomic<int> here{0};
  runner_.On("F/meet", [&](KernelCall* call) {  // ends only if both calls run at once
    const int me = here++;
    met[me].Notify();
    met[1 - me].WaitForNotification();
    call->outputs[0] = call->inputs[0].Take().Escape();
    return absl::OkStatus();
  });
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

TEST_F(SchedulerTest, ManyCallsOnSeveralWorkersGiveTheSameResult) {
  StaticGraph graph;
  AddMain(&graph, "Fib", 1);
  AddFib(&graph, 2);
  SetProgram(graph);
  for (const int workers : {2, 3, 8}) {
    RunEnvironment environment = Environment(workers);
    environment.max_workers = workers;
    EXPECT_EQ(RunToEnd(environment, Numbers({20})).Numbers(), std::vector<int>{6765});
  }
}

// F(n, t) = t if n < 1 else F(n - 1, t) + F(n - 1, t), the sum by a kernel that is worth a thread.
void AddTree(StaticGraph* graph) {
  const Inputs trigger = {"^F/trigger"};
  graph->Function("F", {"n", "t"}).Const("F/one", 1, trigger).Op("F/less", "Less", {"F/n", "F/one"});
  graph->Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/st", "Switch", {"F/t", "F/less"});
  graph->Op("F/n1", "Sub", {"F/sn", "F/one"});
  graph->Call("F/a", "F", 2, {"F/n1", "F/st"}).Call("F/b", "F", 3, {"F/n1", "F/st"});
  graph->Kernel("F/add", {"F/a/return_0", "F/b/return_0"});
  Merge(graph, "F/merge", {"F/add", "F/st:1"}).Result("F", "F/merge");
}

TEST_F(SchedulerTest, ExpensiveKernelsSpreadToo) {
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

TEST_F(SchedulerTest, OneProgramServesConcurrentRuns) {
  StaticGraph graph;
  AddMain(&graph, "Fib", 1);
  AddFib(&graph, 2);
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

// F(n) = 0 if n < 1 else async(F(n - 1)) + 1
StaticGraph AsyncCount() {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  const Inputs trigger = {"^F/trigger"};
  graph.Function("F", {"n"}, 2000).Const("F/one", 1, trigger).Op("F/less", "Less", {"F/n", "F/one"});
  graph.Op("F/switch", "Switch", {"F/n", "F/less"}).Op("F/n1", "Sub", {"F/switch", "F/one"});
  graph.Kernel("F/down", {"F/n1"}).Call("F/call", "F", 2, {"F/down"}).Kernel("F/up", {"F/call/return_0"});
  graph.Op("F/sum", "AddV2", {"F/up", "F/one"});
  Merge(&graph, "F/merge", {"F/sum", "F/switch:1"}).Result("F", "F/merge");
  return graph;
}

TEST_F(SchedulerTest, AsynchronousKernelsMayEndAtOnce) {
  for (const char* node : {"F/down", "F/up"}) {
    runner_.OnAsync(node, [](KernelCall* call, FakeRunner::Done done) {
      call->outputs[0] = call->inputs[0].Take();
      done(absl::OkStatus());
    });
  }
  SetProgram(AsyncCount());
  ExpectInEveryOrder({50}, {50});
}

TEST_F(SchedulerTest, AsynchronousKernelsMayEndOnOtherThreads) {
  for (const char* node : {"F/down", "F/up"}) {
    runner_.OnAsync(node, [this](KernelCall* call, FakeRunner::Done done) {
      call->outputs[0] = call->inputs[0].Take();
      pool_.Schedule([done = std::move(done)] { done(absl::OkStatus()); });
    });
  }
  SetProgram(AsyncCount());
  ExpectInEveryOrder({50}, {50});
}

TEST_F(SchedulerTest, AsynchronousKernelsKeepTheirInputsUntilTheyEnd) {
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

// --- Errors ---------------------------------------------------------------------------------------

TEST_F(SchedulerTest, AnErrorNamesThePathOfCalls) {
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

TEST_F(SchedulerTest, AnErrorOfAFallbackEndsTheRun) {
  StaticGraph graph;
  graph.Arg("x").Arg("y", 1).Op("quotient", "FloorDiv", {"x", "y"}).Retval("quotient");
  SetProgram(graph);
  EXPECT_EQ(RunWith(Numbers({7, 2})).Numbers(), std::vector<int>{3});
  EXPECT_EQ(runner_.runs("quotient"), 0);
  ExpectError(RunWith(Numbers({7, 0})), absl::StatusCode::kInvalidArgument, {"division by zero"});
}

TEST_F(SchedulerTest, TheFirstErrorWins) {
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

TEST_F(SchedulerTest, AnErrorReleasesEveryFrameAndTensor) {
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

TEST_F(SchedulerTest, AMissingOutputIsAnError) {
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

TEST_F(SchedulerTest, APredicateThatIsNoScalarIsAnError) {
  StaticGraph graph;
  graph.Arg("x").Arg("p", 1, DT_BOOL).Op("switch", "Switch", {"x", "p"}).Retval("switch");
  SetProgram(graph);
  auto* predicate = new tensorflow::Tensor(DT_BOOL, tensorflow::TensorShape({2}));
  ExpectError(RunWith({live_.Make(1), Value::Own(predicate)}), absl::StatusCode::kInvalidArgument,
              {"predicate", "scalar bool", "[2]"});
}

// F(n, t) calls itself twice, without end.
StaticGraph Endless(int64_t max_depth) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"n", "t"}, max_depth).Const("F/one", 1, {"^F/trigger"}).Op("F/n1", "AddV2", {"F/n", "F/one"});
  graph.Kernel("F/k", {"F/t"}).Call("F/a", "F", 2, {"F/n1", "F/k"}).Call("F/b", "F", 3, {"F/n1", "F/k"});
  graph.Op("F/sum", "AddV2", {"F/a/return_0", "F/b/return_0"}).Result("F", "F/sum");
  return graph;
}

TEST_F(SchedulerTest, TooDeepARecursionIsAnError) {
  SetProgram(Endless(100));
  ExpectError(RunWith({Number(0), live_.Make(1)}), absl::StatusCode::kResourceExhausted,
              {"Recursion too deep: call of 'F' would be at depth 101, the limit is 100", "max_depth", "{{node F/",
               "in call F > F > F > (94 more) > F > F > F"});
}

TEST_F(SchedulerTest, DepthsUpToTheLimitAreFine) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"n"}, 1).Result("F", "F/n");
  SetProgram(graph);
  EXPECT_EQ(RunWith(Numbers({3})).Numbers(), std::vector<int>{3});
}

TEST_F(SchedulerTest, TooDeepARecursionOnSeveralWorkersLeavesNothingBehind) {
  SetProgram(Endless(1000));
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("shuffle_seed ", seed));
    RunEnvironment environment = Environment(seed);
    environment.max_workers = 4;
    ExpectError(RunToEnd(environment, {Number(0), live_.Make(1)}), absl::StatusCode::kResourceExhausted,
                {"depth 1001"});
  }
}

// The call that is one too deep has been given to another worker.
TEST_F(SchedulerTest, TooDeepACallGivenAwayReleasesItsArguments) {
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
  environment.schedule = [&](std::function<void()> work) {
    absl::Notification ended;
    threads.Schedule([&] {
      work();
      ended.Notify();
    });
    ended.WaitForNotification();
  };
  ExpectError(RunToEnd(environment, {live_.Make(1)}), absl::StatusCode::kResourceExhausted, {"depth 2"});
}

// Two workers on a pool of two threads would keep everything else in the process waiting.
TEST_F(SchedulerTest, LeavesThePoolsThreadsToOthersAfterItsSlice) {
  StaticGraph graph;
  AddMain(&graph, "Fib", 1);
  AddFib(&graph, 2);
  SetProgram(graph);
  tensorflow::thread::ThreadPool pool(tensorflow::Env::Default(), "two", 2);
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

TEST_F(SchedulerTest, GivesTheSameResultsWhenItChangesThreads) {
  StaticGraph graph;
  AddMain(&graph, "Fib", 1);
  AddFib(&graph, 2);
  SetProgram(graph);
  for (int max_workers : {1, 4}) {
    RunEnvironment environment = Environment();
    environment.max_workers = max_workers;
    environment.slice = absl::ZeroDuration();
    environment.start_thread = environment.schedule;
    EXPECT_EQ(RunToEnd(environment, Numbers({18})).Numbers(), std::vector<int>{2584});
  }
}

TEST_F(SchedulerTest, CancellationEndsARecursionWithoutEnd) {
  SetProgram(Endless(int64_t{1} << 40));
  for (const int workers : {1, 4}) {
    RunEnvironment environment = Environment();
    environment.max_workers = workers;
    std::atomic<int> polls{0};
    environment.is_cancelled = [&polls] { return ++polls > 20; };
    ExpectError(RunToEnd(environment, {Number(0), live_.Make(1)}), absl::StatusCode::kCancelled, {"cancelled"});
  }
}

TEST_F(SchedulerTest, CancellationWaitsForKernelsInFlight) {
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

// --- Records --------------------------------------------------------------------------------------

using tensorflow::DT_VARIANT;

StaticGraph& Retain(StaticGraph* graph, const std::string& name, const Inputs& values, const Types& types,
                    const Inputs& controls = {}) {
  Inputs inputs = values;
  inputs.insert(inputs.end(), controls.begin(), controls.end());
  return graph->Node(name, kRetainOp, inputs,
                     {{kTypeAttr, tensorflow::DataTypeSlice(types)}, {kFunctionAttr, "F__fn"}});
}

StaticGraph& Recall(StaticGraph* graph, const std::string& name, const std::string& record, const Types& types) {
  return graph->Node(name, kRecallOp, {record},
                     {{kTypeAttr, tensorflow::DataTypeSlice(types)}, {kFunctionAttr, "F__fn"}});
}

// A call with arguments of several types; returns number and type of each result.
void CallOfTypes(StaticGraph* graph, const std::string& site, const std::string& function, int id,
                 const std::vector<std::pair<std::string, tensorflow::DataType>>& arguments, const Types& results) {
  Inputs calls;
  for (const auto& [input, dtype] : arguments) {
    const int index = static_cast<int>(calls.size());
    calls.push_back(absl::StrCat("^", site, "/call_", index));
    graph->Node(calls.back().substr(1), kCallOp, {input}, StaticGraph::SiteAttrs(function, id, index, dtype));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    graph->Return(site, function, id, static_cast<int>(i), calls, results[i]);
  }
}

// F(n, x) = y, record: y = x if n < 1, else the sum of x and of `calls` times F(n - 1, x). B(record) is the sum
// of y over all invocations. `box` runs between a record and the one around it.
void AddRecorded(StaticGraph* graph, int calls, int64_t max_depth = 1000, bool boxes = false) {
  Types types = {kInt, kInt, kInt};
  for (int i = 0; i < calls; ++i) types.push_back(DT_VARIANT);
  const Inputs trigger = {"^F/trigger"};
  graph->Function("F", {"n", "x"}, max_depth).Const("F/one", 1, trigger).Op("F/less", "Less", {"F/n", "F/one"});
  graph->Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/sx", "Switch", {"F/x", "F/less"});
  graph->Op("F/n1", "Sub", {"F/sn", "F/one"}).Op("F/leaf", "Identity", {"F/sn:1"});
  Retain(graph, "F/none", {}, {}, {"^F/leaf"});
  Inputs summands = {"F/sx"};
  Inputs retained = {"F/n", "F/y", "F/x"};
  for (int i = 0; i < calls; ++i) {
    const std::string site = absl::StrCat("F/call_", i);
    const std::string record = absl::StrCat("F/record_", i);
    CallOfTypes(graph, site, "F", 10 + i, {{"F/n1", kInt}, {"F/sx", kInt}}, {kInt, DT_VARIANT});
    Merge(graph, record, {site + "/return_1", "F/none"}, DT_VARIANT);
    summands.push_back(site + "/return_0");
    retained.push_back(record);
    if (!boxes) continue;
    retained.back() = absl::StrCat("F/box_", i);
    graph->Node(retained.back(), "PyFuncStateless", {record},
                {{"Tin", tensorflow::DataTypeSlice({DT_VARIANT})},
                 {"Tout", tensorflow::DataTypeSlice({DT_VARIANT})},
                 {"token", retained.back()}});
  }
  graph->Kernel("F/add", summands);
  Merge(graph, "F/y", {"F/add", "F/sx:1"}).Result("F", "F/y");
  Retain(graph, "F/retain", retained, types).Result("F", "F/retain", 1, DT_VARIANT);

  graph->Function("B", {"record"}, max_depth, DT_VARIANT);
  Recall(graph, "B/recall", "B/record", types).Const("B/one", 1, {"^B/trigger"});
  graph->Op("B/less", "Less", {"B/recall", "B/one"}).Op("B/sy", "Switch", {"B/recall:1", "B/less"});
  summands = {"B/sy"};
  for (int i = 0; i < calls; ++i) {
    const std::string site = absl::StrCat("B/call_", i);
    const std::string record = absl::StrCat("B/record_", i);
    graph->Op(record, "Switch", {absl::StrCat("B/recall:", 3 + i), "B/less"}, DT_VARIANT);
    CallOfTypes(graph, site, "B", 20 + i, {{record, DT_VARIANT}}, {kInt});
    summands.push_back(site + "/return_0");
  }
  graph->Kernel("B/add", summands);
  Merge(graph, "B/merge", {"B/add", "B/sy:1"}).Result("B", "B/merge");
}

// The main graph: F forward, and as many times backward.
void AddRecordedMain(StaticGraph* graph, int backwards) {
  graph->Arg("n").Arg("x", 1);
  CallOfTypes(graph, "forward", "F", 1, {{"n", kInt}, {"x", kInt}},
              backwards > 0 ? Types{kInt, DT_VARIANT} : Types{kInt});
  graph->Retval("forward/return_0");
  for (int i = 0; i < backwards; ++i) {
    const std::string site = absl::StrCat("backward_", i);
    CallOfTypes(graph, site, "B", 2 + i, {{"forward/return_1", DT_VARIANT}}, {kInt});
    graph->Retval(site + "/return_0", 1 + i);
  }
}

class RecordedTest : public SchedulerTest {
 protected:
  ~RecordedTest() override { EXPECT_EQ(Record::LiveCount(), 0); }

  // Sums of boxed numbers, until one fails.
  void AddBoxed(KernelRunner::Cost cost = KernelRunner::Cost::kCheap) {
    for (const char* node : {"F/add", "B/add"}) {
      runner_.On(
          node,
          [this, node](KernelCall* call) {
            if (++sums_ == failing_sum_) return absl::InternalError("broken");
            const int inputs = 1 + calls_;
            int32_t sum = 0;
            for (int i = 0; i < inputs; ++i) sum += LiveTensors::Number(call->inputs[i]);
            call->outputs[0] = live_.Make(sum);
            return absl::OkStatus();
          },
          cost);
    }
    for (const char* node : {"F/box_0", "F/box_1"}) {
      runner_.On(node, [](KernelCall* call) {
        call->outputs[0] = Value::Own(new tensorflow::Tensor(TensorFromValue(call->inputs[0], DT_VARIANT)));
        return absl::OkStatus();
      });
    }
  }

  std::vector<int> Expected(int n, int x, int backwards) const {
    int y = x;
    int sum = x;
    for (int i = 0; i < n; ++i) {
      y = calls_ * y + x;
      sum = calls_ * sum + y;
    }
    std::vector<int> expected(1 + backwards, sum);
    expected[0] = y;
    return expected;
  }

  int calls_ = 1;  // in the body
  std::atomic<int> sums_{0};
  std::atomic<int> failing_sum_{0};
};

TEST_F(RecordedTest, ABackwardRecursionReadsWhatTheForwardOneKept) {
  for (calls_ = 1; calls_ <= 2; ++calls_) {
    for (const bool boxes : {false, true}) {
      for (const int backwards : {0, 1, 2}) {
        StaticGraph graph;
        AddRecordedMain(&graph, backwards);
        AddRecorded(&graph, calls_, 1000, boxes);
        SetProgram(graph);
        for (uint64_t seed = 0; seed < kSeeds; ++seed) {
          for (const int workers : {1, 4}) {
            SCOPED_TRACE(absl::StrCat("calls ", calls_, " boxes ", boxes, " backwards ", backwards, " seed ", seed));
            AddBoxed(workers > 1 ? KernelRunner::Cost::kExpensive : KernelRunner::Cost::kCheap);
            RunEnvironment environment = Environment(seed);
            environment.max_workers = workers;
            Outcome outcome = RunToEnd(environment, {Number(6), live_.Make(3)});
            EXPECT_TRUE(outcome.status.ok()) << outcome.status;
            EXPECT_EQ(outcome.Numbers(), Expected(6, 3, backwards));
            outcome.Release();
            EXPECT_EQ(live_.count(), 0);
            EXPECT_EQ(Record::LiveCount(), 0);
          }
        }
      }
    }
  }
}

TEST_F(RecordedTest, AnErrorLeavesNoRecordBehind) {
  calls_ = 2;
  StaticGraph graph;
  AddRecordedMain(&graph, 2);
  AddRecorded(&graph, 2);
  SetProgram(graph);
  for (failing_sum_ = 1; failing_sum_ < 90; failing_sum_ = failing_sum_ + 3) {
    for (const int workers : {1, 4}) {
      AddBoxed(workers > 1 ? KernelRunner::Cost::kExpensive : KernelRunner::Cost::kCheap);
      RunEnvironment environment = Environment(failing_sum_);
      environment.max_workers = workers;
      sums_ = 0;
      ExpectError(RunToEnd(environment, {Number(5), live_.Make(3)}), absl::StatusCode::kInternal, {"broken"});
      EXPECT_EQ(Record::LiveCount(), 0);
    }
  }
}

TEST_F(RecordedTest, CancellationLeavesNoRecordBehind) {
  calls_ = 2;
  StaticGraph graph;
  AddRecordedMain(&graph, 2);
  AddRecorded(&graph, 2);
  SetProgram(graph);
  for (int last_poll = 1; last_poll < 60; last_poll += 2) {
    AddBoxed(KernelRunner::Cost::kExpensive);
    RunEnvironment environment = Environment();
    environment.max_workers = last_poll % 4;
    std::atomic<int> polls{0};
    environment.is_cancelled = [&] { return ++polls >= last_poll; };
    Outcome outcome = RunToEnd(environment, {Number(6), live_.Make(3)});
    if (polls < last_poll) {  // kernels on other threads have let the run end with fewer polls
      EXPECT_TRUE(outcome.status.ok()) << outcome.status;
      outcome.Release();
      EXPECT_EQ(live_.count(), 0);
    } else {
      ExpectError(outcome, absl::StatusCode::kCancelled, {"cancelled"});
    }
    EXPECT_EQ(Record::LiveCount(), 0);
  }
}

// Else a gradient would copy what it could write to, and need the memory of the whole recursion to its end.
TEST_F(RecordedTest, TheLastReaderGetsTheValuesThemselves) {
  for (const bool boxes : {false, true}) {
    for (const int readers : {1, 2}) {
      StaticGraph graph;
      graph.Arg("x").Kernel("y", {"x"}).Const("constant", 4);
      runner_.On("y", [this](KernelCall* call) {
        call->outputs[0] = live_.Make(5);
        return absl::OkStatus();
      });
      Retain(&graph, "retain", {"y", "constant"}, {kInt, kInt});
      const std::string record = boxes ? "box" : "retain";
      if (boxes) {
        graph.Node("box", "PyFuncStateless", {"retain"},
                   {{"Tin", tensorflow::DataTypeSlice({DT_VARIANT})},
                    {"Tout", tensorflow::DataTypeSlice({DT_VARIANT})},
                    {"token", "box"}});
        runner_.On("box", [](KernelCall* call) {
          call->outputs[0] = Value::Own(new tensorflow::Tensor(TensorFromValue(call->inputs[0], DT_VARIANT)));
          return absl::OkStatus();
        });
      }
      int unshared = 0;
      for (int i = 0; i < readers; ++i) {
        const std::string recall = absl::StrCat("recall_", i);
        const std::string reader = absl::StrCat("reader_", i);
        Recall(&graph, recall, record, {kInt, kInt}).Kernel(reader, {recall, recall + ":1"}).Retval(reader, i);
        runner_.On(reader, [&unshared](KernelCall* call) {
          unshared += call->inputs[0].tensor->RefCountIsOne();
          call->outputs[0] = Number(LiveTensors::Number(call->inputs[0]) + call->inputs[1].int32);
          return absl::OkStatus();
        });
      }
      SetProgram(graph);
      EXPECT_EQ(RunWith({Number(1)}).Numbers(), std::vector<int>(readers, 9));
      EXPECT_EQ(unshared, 1) << "boxes " << boxes << " readers " << readers;
      EXPECT_EQ(live_.count(), 0);
      EXPECT_EQ(Record::LiveCount(), 0);
    }
  }
}

TEST_F(RecordedTest, ARecordOutlivesItsProgram) {
  tensorflow::Tensor constant(kInt, tensorflow::TensorShape({1}));
  constant.flat<int32_t>()(0) = 7;
  tensorflow::Tensor boxed;
  {
    StaticGraph graph;
    graph.Arg("x").Node("constant", "Const", {}, {{"dtype", kInt}, {"value", constant}});
    Retain(&graph, "retain", {"x", "constant"}, {kInt, kInt}).Retval("retain", 0, DT_VARIANT);
    SetProgram(graph);
    const Outcome outcome = RunWith({live_.Make(5)});
    boxed = TensorFromValue(outcome.retvals[0], DT_VARIANT);
  }
  StaticGraph graph;
  graph.Arg("record", 0, DT_VARIANT);
  Recall(&graph, "recall", "record", {kInt, kInt}).Retval("recall").Retval("recall:1", 1);
  SetProgram(graph);
  EXPECT_EQ(RunWith({Value::Own(new tensorflow::Tensor(boxed))}).Numbers(), (std::vector<int>{5, 7}));
  EXPECT_EQ(RunWith({Value::Own(new tensorflow::Tensor(boxed))}).Numbers(), (std::vector<int>{5, 7}));
  boxed = tensorflow::Tensor();
  EXPECT_EQ(live_.count(), 0);
}

// i, r = i + 1, Retain(i, r) while i < n; then reads the last one.
TEST_F(RecordedTest, LoopsCarryRecords) {
  StaticGraph graph;
  graph.Arg("n").Const("zero", 0).Enter("enter_i", "zero", "loop").Enter("enter_n", "n", "loop", true);
  Retain(&graph, "start", {"n"}, {kInt});
  for (const bool is_constant : {false, true}) {
    graph.Node(is_constant ? "first" : "enter_r", "Enter", {"start"},
               {{"T", DT_VARIANT}, {"frame_name", "loop"}, {"is_constant", is_constant}, {"parallel_iterations", 10}});
  }
  Merge(&graph, "i", {"enter_i", "next_i"});
  Merge(&graph, "r", {"enter_r", "next_r"}, DT_VARIANT);
  graph.Op("less", "Less", {"i", "enter_n"}).Node("cond", "LoopCond", {"less"});
  graph.Op("switch_i", "Switch", {"i", "cond"}).Op("switch_r", "Switch", {"r", "cond"}, DT_VARIANT);
  graph.Op("body", "Identity", {"switch_i:1"}).Const("one", 1, {"^body"});
  Retain(&graph, "retain", {"body", "switch_r:1", "first"}, {kInt, DT_VARIANT, DT_VARIANT});
  graph.Op("add_i", "AddV2", {"body", "one"}).Op("next_i", "NextIteration", {"add_i"});
  graph.Op("next_r", "NextIteration", {"retain"}, DT_VARIANT).Op("exit", "Exit", {"switch_r"}, DT_VARIANT);
  Recall(&graph, "recall", "exit", {kInt, DT_VARIANT, DT_VARIANT}).Retval("recall");
  Recall(&graph, "recall_first", "recall:2", {kInt}).Retval("recall_first", 1);
  SetProgram(graph);
  ExpectInEveryOrder({10}, {9, 10});
}

TEST_F(RecordedTest, ARecordMayBeEmpty) {
  StaticGraph graph;
  AddMain(&graph, "G", 1);
  graph.Function("G", {"x"});
  Retain(&graph, "G/retain", {}, {}, {"^G/trigger"});
  Recall(&graph, "G/recall", "G/retain", {}).Op("G/after", "Identity", {"G/x", "^G/recall"}).Result("G", "G/after");
  SetProgram(graph);
  ExpectInEveryOrder({3}, {3});
}

TEST_F(RecordedTest, ARecordOfADeadBranchIsDead) {
  StaticGraph graph;
  graph.Arg("x").Const("no", false).Op("switch", "Switch", {"x", "no"});
  Retain(&graph, "dead", {"x", "switch:1"}, {kInt, kInt});
  Retain(&graph, "live", {"x", "switch"}, {kInt, kInt});
  Recall(&graph, "dead_recall", "dead", {kInt, kInt}).Retval("dead_recall");
  Merge(&graph, "merge", {"dead", "live"}, DT_VARIANT);
  Recall(&graph, "recall", "merge", {kInt, kInt}).Retval("recall:1", 1);
  SetProgram(graph);
  ExpectInEveryOrder({3}, {Outcome::kDead, 3});
}

TEST_F(RecordedTest, WhatIsNoRecordIsAnError) {
  StaticGraph graph;
  graph.Arg("record", 0, DT_VARIANT).Arg("x", 1);
  CallOfTypes(&graph, "main", "B", 1, {{"record", DT_VARIANT}}, {kInt});
  graph.Retval("main/return_0");
  AddRecorded(&graph, 1);
  SetProgram(graph);
  auto* empty = new tensorflow::Tensor(DT_VARIANT, tensorflow::TensorShape({}));
  ExpectError(RunWith({Value::Own(empty), live_.Make(1)}), absl::StatusCode::kInvalidArgument,
              {"Gradient of 'F': its input is not the record of a forward call but an empty variant",
               "{{node B/recall}}", "in call B"});
  Record* record = Record::New(1);
  record->Set(0, live_.Make(1), kInt);
  ExpectError(RunWith({Value::Own(record), live_.Make(1)}), absl::StatusCode::kInvalidArgument,
              {"holds 1 values, expected 4", "{{node B/recall}}"});
}

// --- Depth is heap, not stack ---------------------------------------------------------------------

class DeepRecursionTest : public SchedulerTest {
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
  graph.Function("F", {"n"}, kDeep + 1).Const("F/one", 1, {"^F/trigger"}).Op("F/less", "Less", {"F/n", "F/one"});
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
  graph.Function("F", {"n"}, kDeep + 1).Const("F/one", 1, {"^F/trigger"}).Op("F/less", "Less", {"F/n", "F/one"});
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
  graph.Function("F", {"n"}, kDeep + 1).Const("F/one", 1, {"^F/trigger"}).Op("F/less", "Less", {"F/n", "F/one"});
  graph.Op("F/switch", "Switch", {"F/n", "F/less"}).Op("F/n1", "Sub", {"F/switch", "F/one"});
  graph.Call("F/call", "F", 2, {"F/n1"}).Op("F/result", "Neg", {"F/call/return_0"}).Result("F", "F/result");
  SetProgram(graph);
  EXPECT_EQ(RunOnSmallStacks(Numbers({kDeep - 1})).Numbers(), std::vector<int>{Outcome::kDead});
}

// F(n, x) = bottom(x) if n < 1 else F(n - 1, x), where x comes when all frames are open.
void AddLateChain(StaticGraph* graph) {
  graph->Arg("x0").Kernel("late", {"x0"}).Call("main", "F", 1, {"x0", "late"}).Retval("main/return_0");
  graph->Function("F", {"n", "x"}, kDeep + 1).Const("F/one", 1, {"^F/trigger"}).Op("F/less", "Less", {"F/n", "F/one"});
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
    absl::Notification bottom;
    runner_.OnAsync("late", [&](KernelCall* call, FakeRunner::Done done) {
      call->outputs[0] = is_boxed ? live_.Make(42) : Number(42);
      release = std::move(done);
    });
    runner_.On("F/bottom", [&](KernelCall*) {
      bottom.Notify();
      return absl::OkStatus();
    });
    SetProgram(graph);
    SmallStackThreads threads;
    RunEnvironment environment = Environment();
    environment.schedule = [&threads](std::function<void()> work) { threads.Schedule(std::move(work)); };
    PendingRun run;
    threads.Schedule([&] { run.Start(environment, Numbers({kDeep - 1})); });
    bottom.WaitForNotification();
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

class DeepRecordedTest : public RecordedTest {};

TEST_F(DeepRecordedTest, GoesAMillionCallsForwardAndBack) {
  for (const bool boxes : {false, true}) {
    for (const int backwards : {0, 1, 2}) {
      SCOPED_TRACE(absl::StrCat("boxes ", boxes, " backwards ", backwards));
      StaticGraph graph;
      AddRecordedMain(&graph, backwards);
      AddRecorded(&graph, 1, kDeep + 1, boxes);
      AddBoxed();  // for the boxes
      for (const char* node : {"F/add", "B/add"}) {
        runner_.On(node, [](KernelCall* call) {
          call->outputs[0] = Number(static_cast<int32_t>(static_cast<uint32_t>(call->inputs[0].int32) +
                                                         static_cast<uint32_t>(call->inputs[1].int32)));
          return absl::OkStatus();
        });
      }
      SetProgram(graph);
      SmallStackThreads threads;
      RunEnvironment environment = Environment();
      environment.schedule = [&threads](std::function<void()> work) { threads.Schedule(std::move(work)); };
      PendingRun run;
      threads.Schedule([&] { run.Start(environment, Numbers({kDeep - 1, 1})); });
      const Outcome outcome = run.Wait();
      const uint64_t sum = uint64_t{kDeep} * (kDeep + 1) / 2;
      std::vector<int> expected(1 + backwards, static_cast<int>(static_cast<uint32_t>(sum)));
      expected[0] = kDeep;
      EXPECT_TRUE(outcome.status.ok()) << outcome.status;
      EXPECT_EQ(outcome.Numbers(), expected);
      EXPECT_EQ(Record::LiveCount(), 0);
    }
  }
}

}  // namespace
}  // namespace tensorflow_recursion
