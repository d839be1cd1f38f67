// The main graph beside calls: its expensive operators go to other threads, as in stock execution.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "tests/cc/executor/run_program_fixture.h"
#include "tests/cc/values/numbers.h"

namespace tensorflow_recursion {
namespace {

class MainGraphTest : public RunProgramTest {
 protected:
  // One worker, whose closures for other threads are counted.
  RunEnvironment Spreading(uint64_t seed = 0) {
    RunEnvironment environment = Environment(seed);
    environment.spreads_main_graph = true;
    environment.schedule = [this](std::function<void()> work) {
      ++num_scheduled_;
      pool_.Schedule(std::move(work));
    };
    return environment;
  }

  // Adds `length` kernels to a new number, one after the other: "c_0" to "c_<length - 1>".
  static std::string AddChain(StaticGraph* graph, const std::string& name, const std::string& input, int length) {
    std::string last = input;
    for (int i = 0; i < length; ++i) {
      const std::string next = absl::StrCat(name, "_", i);
      graph->Kernel(next, {last});
      last = next;
    }
    return last;
  }

  FakeRunner::Kernel PlusOne() {
    return [this](KernelCall* call) {
      call->outputs[0] = live_.Make(LiveTensors::Number(call->inputs[0]) + 1);
      return absl::OkStatus();
    };
  }

  void OnChain(const std::string& name, int length, KernelRunner::Cost cost) {
    for (int i = 0; i < length; ++i) runner_.On(absl::StrCat(name, "_", i), PlusOne(), cost);
  }

  std::atomic<int> num_scheduled_{0};
};

TEST_F(MainGraphTest, OperatorsRunAtOnceWithOneWorker) {
  StaticGraph graph;
  graph.Arg("x");
  for (int i = 0; i < 4; ++i) graph.Kernel(absl::StrCat("k", i), {"x"}).Retval(absl::StrCat("k", i), i);
  std::atomic<int> num_missing{4};
  absl::Notification all;
  const auto meet = [&](KernelCall* call) {
    if (--num_missing == 0) all.Notify();
    all.WaitForNotification();
    call->outputs[0] = live_.Make(7);
    return absl::OkStatus();
  };
  for (int i = 0; i < 4; ++i) runner_.On(absl::StrCat("k", i), meet, KernelRunner::Cost::kModerate);
  SetProgram(graph);
  EXPECT_EQ(RunToEnd(Spreading(), Numbers({1})).Numbers(), std::vector<int>(4, 7));
  EXPECT_EQ(live_.count(), 0);
}

TEST_F(MainGraphTest, ChainsGoOnWithoutOneAnother) {
  // Each chain's first kernel waits for the end of the next chain: only the last one's ends by itself.
  constexpr int kChains = 4, kLength = 5;
  StaticGraph graph;
  graph.Arg("x");
  for (int c = 0; c < kChains; ++c) {
    const std::string name = absl::StrCat("chain", c);
    graph.Retval(AddChain(&graph, name, "x", kLength), c);
    OnChain(name, kLength, KernelRunner::Cost::kModerate);
  }
  std::vector<absl::Notification> ends(kChains);
  for (int c = 0; c < kChains; ++c) {
    runner_.On(
        absl::StrCat("chain", c, "_0"),
        [&, c](KernelCall* call) {
          if (c + 1 < kChains) ends[c + 1].WaitForNotification();
          return PlusOne()(call);
        },
        KernelRunner::Cost::kModerate);
    runner_.On(
        absl::StrCat("chain", c, "_", kLength - 1),
        [&, c](KernelCall* call) {
          ends[c].Notify();
          return PlusOne()(call);
        },
        KernelRunner::Cost::kModerate);
  }
  SetProgram(graph);
  EXPECT_EQ(RunToEnd(Spreading(), {live_.Make(1)}).Numbers(), std::vector<int>(kChains, 1 + kLength));
  EXPECT_EQ(live_.count(), 0);
}

TEST_F(MainGraphTest, ResultsAreTheSameInEveryOrder) {
  // Chains that part and meet, with cheap operators between, beside a call.
  StaticGraph graph;
  graph.Arg("x").Arg("n", 1);
  const std::string a = AddChain(&graph, "a", "x", 6), b = AddChain(&graph, "b", "a_2", 6);
  graph.Kernel("sum", {a, b}).Call("f", "Fib", 1, {"n"}).Retval("sum").Retval("f/return_0", 1);
  AddFib(&graph, 2);
  OnChain("a", 6, KernelRunner::Cost::kModerate);
  OnChain("b", 6, KernelRunner::Cost::kExpensive);
  runner_.On("a_4", PlusOne()).On("b_1", PlusOne());
  runner_.On("sum", [this](KernelCall* call) {
    call->outputs[0] = live_.Make(LiveTensors::Number(call->inputs[0]) + LiveTensors::Number(call->inputs[1]));
    return absl::OkStatus();
  });
  SetProgram(graph);
  for (const int workers : {1, 3}) {
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE(absl::StrCat("shuffle_seed ", seed, ", workers ", workers));
      RunEnvironment environment = Spreading(seed);
      environment.max_workers = workers;
      Outcome outcome = RunToEnd(environment, {live_.Make(1), Number(10)});
      EXPECT_EQ(outcome.Numbers(), (std::vector<int>{7 + 10, 55}));
      outcome.Release();
      EXPECT_EQ(live_.count(), 0);
    }
  }
}

TEST_F(MainGraphTest, WhatIsAloneRunsHere) {
  StaticGraph graph;
  graph.Arg("x");
  graph.Retval(AddChain(&graph, "c", "x", 10));
  OnChain("c", 10, KernelRunner::Cost::kExpensive);
  SetProgram(graph);
  EXPECT_EQ(RunToEnd(Spreading(), {live_.Make(0)}).Numbers(), std::vector<int>{10});
  EXPECT_EQ(num_scheduled_, 0);
}

TEST_F(MainGraphTest, WhatIsCheapGoesFirstAndTheRestRunsHere) {
  StaticGraph graph;
  graph.Arg("x").Kernel("costly", {"x"}).Kernel("cheap", {"x"}).Retval("costly").Retval("cheap", 1);
  runner_.On("costly", PlusOne(), KernelRunner::Cost::kExpensive).On("cheap", PlusOne());
  SetProgram(graph);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_EQ(RunToEnd(Spreading(seed), {live_.Make(0)}).Numbers(), (std::vector<int>{1, 1}));
  }
  EXPECT_EQ(num_scheduled_, 0);
}

TEST_F(MainGraphTest, BodiesKeepWhatIsOnlyModerate) {
  StaticGraph graph;
  graph.Arg("x").Call("f", "F", 1, {"x"}).Retval("f/return_0");
  graph.Function("F", {"x"}).Kernel("F/a", {"F/x"}).Kernel("F/b", {"F/x"}).Kernel("F/sum", {"F/a", "F/b"});
  graph.Result("F", "F/sum");
  for (const char* node : {"F/a", "F/b", "F/sum"}) runner_.On(node, PlusOne(), KernelRunner::Cost::kModerate);
  SetProgram(graph);
  EXPECT_EQ(RunToEnd(Spreading(), {live_.Make(0)}).Numbers(), std::vector<int>{2});
  EXPECT_EQ(num_scheduled_, 0);
}

TEST_F(MainGraphTest, AnOperatorDoesNotWaitForCalls) {
  // The body waits for the operator beside the call, which the only worker held when it opened the call.
  StaticGraph graph;
  graph.Arg("x").Kernel("k", {"x"}).Call("f", "F", 1, {"x"}).Retval("k").Retval("f/return_0", 1);
  graph.Function("F", {"x"}).Kernel("F/wait", {"F/x"}).Result("F", "F/wait");
  absl::Notification has_run;
  runner_.On(
      "k",
      [&](KernelCall* call) {
        has_run.Notify();
        return PlusOne()(call);
      },
      KernelRunner::Cost::kExpensive);
  runner_.On("F/wait", [&](KernelCall* call) {
    has_run.WaitForNotification();
    return PlusOne()(call);
  });
  SetProgram(graph);
  EXPECT_EQ(RunToEnd(Spreading(), {live_.Make(0)}).Numbers(), (std::vector<int>{1, 1}));
}

TEST_F(MainGraphTest, LoopsOfTheMainGraphSpreadTheirOperatorsToo) {
  StaticGraph graph;
  graph.Arg("n").Arg("t", 1).Const("zero", 0).Enter("enter_i", "zero", "loop").Enter("enter_n", "n", "loop", true);
  graph.Enter("enter_t", "t", "loop");
  Merge(&graph, "i", {"enter_i", "next_i"});
  Merge(&graph, "v", {"enter_t", "next_v"});
  graph.Op("less", "Less", {"i", "enter_n"}).Node("cond", "LoopCond", {"less"});
  graph.Op("switch_i", "Switch", {"i", "cond"}).Op("switch_v", "Switch", {"v", "cond"}).Const("one", 1, {"^switch_i"});
  graph.Op("add", "AddV2", {"switch_i:1", "one"}).Op("next_i", "NextIteration", {"add"});
  graph.Kernel("left", {"switch_v:1"}).Kernel("right", {"switch_v:1"}).Kernel("join", {"left", "right"});
  graph.Op("next_v", "NextIteration", {"join"}).Op("exit", "Exit", {"switch_v"}).Retval("exit");
  for (const char* side : {"left", "right"}) runner_.On(side, PlusOne(), KernelRunner::Cost::kModerate);
  SetProgram(graph);
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("shuffle_seed ", seed));
    EXPECT_EQ(RunToEnd(Spreading(seed), {Number(20), live_.Make(0)}).Numbers(), std::vector<int>{20});
    EXPECT_EQ(live_.count(), 0);
  }
  EXPECT_GT(num_scheduled_, 0);
}

TEST_F(MainGraphTest, AnErrorEndsTheRunAndLeavesNothing) {
  StaticGraph graph;
  graph.Arg("x");
  for (const char* name : {"a", "b", "c"}) OnChain(name, 8, KernelRunner::Cost::kModerate);
  graph.Retval(AddChain(&graph, "a", "x", 8)).Retval(AddChain(&graph, "b", "x", 8), 1);
  graph.Retval(AddChain(&graph, "c", "x", 8), 2);
  SetProgram(graph);
  for (const char* failing : {"a_0", "b_3", "c_7"}) {
    runner_.On(failing, [](KernelCall*) { return absl::InternalError("broken"); }, KernelRunner::Cost::kModerate);
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE(absl::StrCat("shuffle_seed ", seed, ", failing ", failing));
      ExpectError(RunToEnd(Spreading(seed), {live_.Make(0)}), absl::StatusCode::kInternal, {"broken"});
    }
    runner_.On(failing, PlusOne(), KernelRunner::Cost::kModerate);
  }
}

}  // namespace
}  // namespace tensorflow_recursion
