// Programs, calls in them, and values on their way; the other themes have a file each.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cc/executor/run_program_fixture.h"
#include "tests/cc/values/numbers.h"

namespace tensorflow_recursion {
namespace {

// --- Programs -------------------------------------------------------------------------------------

// Names nodes of a function: in("x") is "F/x".
std::function<std::string(const std::string&)> NamesIn(const std::string& function) {
  return [function](const std::string& node) { return absl::StrCat(function, "/", node); };
}

TEST_F(RunProgramTest, RunsAGraphWithoutCalls) {
  StaticGraph graph;
  graph.Arg("x").Const("two", 2).Op("y", "Mul", {"x", "two"}).Retval("y").Retval("x", 1).Retval("two", 2);
  SetProgram(graph);
  ExpectInEveryOrder({21}, {42, 21, 2});
}

TEST_F(RunProgramTest, ControlEdgesOfArgumentsCount) {
  StaticGraph graph;
  graph.Arg("x").Const("three", 3, {"^x"}).Call("main", "F", 1, {"three"}, 1).Retval("main/return_0");
  graph.Function("F", {"a"}).Op("F/b", "Neg", {"F/a"}).Result("F", "F/b");
  SetProgram(graph);
  ExpectInEveryOrder({21}, {-3});
}

TEST_F(RunProgramTest, TellsOfTheCallsOfTheMainGraph) {
  StaticGraph graph;
  graph.Arg("x").Call("main", "F", 1, {"x"}, 1).Retval("main/return_0");
  graph.Function("F", {"a"}).Call("F", "G", 2, {"F/a"}, 1).Result("F", "F/return_0");
  graph.Function("G", {"a"}).Op("G/b", "Neg", {"G/a"}).Result("G", "G/b");
  SetProgram(graph);
  std::atomic<int> calls{0};
  RunEnvironment environment = Environment();
  environment.on_main_call = [&calls] { ++calls; };
  EXPECT_EQ(RunToEnd(environment, Numbers({5})).Numbers(), std::vector<int>{-5});
  EXPECT_EQ(calls, 1);
}

// More than a pending count can hold.
TEST_F(RunProgramTest, WaitsForSeventyThousandControlInputs) {
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
TEST_F(RunProgramTest, RunsOperatorsOfTheMainGraphBeforeACallOfConstants) {
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

TEST_F(RunProgramTest, ReleasesArgumentsThatNobodyReads) {
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

TEST_F(RunProgramTest, ComputesFib) {
  const StaticGraph graph = FibGraph();
  SetProgram(graph);
  ExpectInEveryOrder({0}, {0});
  ExpectInEveryOrder({1}, {1});
  ExpectInEveryOrder({13}, {233});
}

// ack(m, n) = n + 1 if m = 0; ack(m - 1, 1) if n = 0; else ack(m - 1, ack(m, n - 1))
TEST_F(RunProgramTest, ComputesAckermann) {
  StaticGraph graph;
  AddMain(&graph, "A", 2);
  graph.Function("A", {"m", "n"}).Const("A/zero", 0, {"^A/frame_start"}).Const("A/one", 1, {"^A/frame_start"});
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
TEST_F(RunProgramTest, ComputesMutualRecursion) {
  StaticGraph graph;
  AddMain(&graph, "Even", 1);
  for (const auto& [name, other, at_zero, id] : {std::tuple("Even", "Odd", 1, 2), std::tuple("Odd", "Even", 0, 3)}) {
    const auto in = NamesIn(name);
    graph.Function(name, {"n"})
        .Const(in("zero"), 0, {"^" + in("frame_start")})
        .Const(in("one"), 1, {"^" + in("frame_start")});
    graph.Op(in("done"), "Equal", {in("n"), in("zero")}).Op(in("switch"), "Switch", {in("n"), in("done")});
    graph.Op(in("less"), "Sub", {in("switch"), in("one")}).Call(in("call"), other, id, {in("less")});
    graph.Op(in("pivot"), "Identity", {in("switch:1")}).Const(in("answer"), at_zero, {"^" + in("pivot")});
    Merge(&graph, in("merge"), {in("call/return_0"), in("answer")}).Result(name, in("merge"));
  }
  SetProgram(graph);
  ExpectInEveryOrder({20}, {1});
  ExpectInEveryOrder({21}, {0});
}

TEST_F(RunProgramTest, EffectsComeBeforeWhatWaitsForThem) {
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

// --- Values passed on -----------------------------------------------------------------------------

// F(x) = x, x, x; G(x) sends each result of F to several readers of each kind.
TEST_F(RunProgramTest, OneValueHasReadersOfEveryKind) {
  StaticGraph graph;
  AddMain(&graph, "G", 1, 3);
  graph.Function("F", {"x"}).Result("F", "F/x", 0).Result("F", "F/x", 1).Result("F", "F/x", 2);
  graph.Function("G", {"x"}).Const("G/true", true, {"^G/frame_start"}).Call("G/f", "F", 2, {"G/x"}, 3);
  graph.Op("G/gate", "Switch", {"G/f/return_0", "G/true"}).Kernel("G/kernel", {"G/f/return_0"});
  Merge(&graph, "G/merge", {"G/f/return_0", "G/gate"});
  graph.Call("G/again", "F", 3, {"G/f/return_0"}, 2);
  graph.Op("G/sum", "AddV2", {"G/again/return_1", "G/kernel"}).Op("G/all", "AddV2", {"G/sum", "G/gate:1"});
  graph.Result("G", "G/f/return_0", 0).Result("G", "G/all", 1).Result("G", "G/merge", 2);
  SetProgram(graph);
  ExpectInEveryOrder({5}, {5, 15, 5});
}

TEST_F(RunProgramTest, TensorsGoWithTheirLastReader) {
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

TEST_F(RunProgramTest, HandsTensorsDownTheRecursion) {
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

TEST_F(RunProgramTest, SwitchesOfConstants) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"x"}).Const("F/two", 2, {"^F/frame_start"}).Op("F/less", "Less", {"F/x", "F/two"});
  graph.Op("F/switch", "Switch", {"F/two", "F/less"}).Op("F/sum", "AddV2", {"F/switch:1", "F/switch:1"});
  Merge(&graph, "F/merge", {"F/switch", "F/sum"}).Result("F", "F/merge");
  SetProgram(graph);
  ExpectInEveryOrder({1}, {4});
  ExpectInEveryOrder({2}, {2});
}

// swap(a, b) hands its arguments back while it is being called, to an operator that shares slots with the call.
TEST_F(RunProgramTest, ArgumentsThatReturnAtOnceLeaveTheOthersAlone) {
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
    if (region.name == "F") {
      ASSERT_EQ(region.num_slots, 2);
    }
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
TEST_F(RunProgramTest, AnOutputReturnsBeforeArgumentsItDoesNotNeed) {
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

}  // namespace
}  // namespace tensorflow_recursion
