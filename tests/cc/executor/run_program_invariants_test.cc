// Arguments that never change in a recursion: the frames below the call that enters it do without them.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/cc/analysis/invariant_graphs.h"
#include "tests/cc/executor/run_program_fixture.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_BOOL;

// F(n, w) = w if n < 1 else F(n - 1, w) + F(n - 2, w) + w
StaticGraph Tree() {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  const Inputs frame_start = {"^F/frame_start"};
  graph.Function("F", {"n", "w"}).Const("F/one", 1, frame_start).Const("F/two", 2, frame_start);
  graph.Op("F/less", "Less", {"F/n", "F/one"}).Op("F/sn", "Switch", {"F/n", "F/less"});
  graph.Op("F/sw", "Switch", {"F/w", "F/less"}).Op("F/n1", "Sub", {"F/sn", "F/one"});
  graph.Op("F/n2", "Sub", {"F/sn", "F/two"})
      .Call("F/a", "F", 2, {"F/n1", "F/sw"})
      .Call("F/b", "F", 3, {"F/n2", "F/sw"});
  graph.Op("F/sum", "AddV2", {"F/a/return_0", "F/b/return_0"}).Op("F/all", "AddV2", {"F/sum", "F/sw"});
  graph.Kernel("F/base", {"F/sw:1"});
  Merge(&graph, "F/merge", {"F/all", "F/base"}).Result("F", "F/merge");
  return graph;
}

TEST_F(RunProgramTest, FramesReadTheInvariantsOfTheCallThatEnters) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  AddWeighted(&graph, "F", "F", 2);
  SetProgram(graph);
  ExpectInEveryOrder({5, 3}, {18});
}

TEST_F(RunProgramTest, SeveralCallsEnterWithInvariantsOfTheirOwn) {
  StaticGraph graph;
  graph.Arg("x").Const("one", 1).Const("two", 2).Call("a", "F", 1, {"x", "one"}).Call("b", "F", 3, {"x", "two"});
  graph.Retval("a/return_0").Retval("b/return_0", 1);
  AddWeighted(&graph, "F", "F", 2);
  SetProgram(graph);
  ExpectInEveryOrder({5}, {6, 12});
}

TEST_F(RunProgramTest, InvariantsHaveTheirPlaceInEveryFunctionOfARecursion) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  AddWeighted(&graph, "F", "G", 2, {"n", "w"}, {"sw", "n1"});
  AddWeighted(&graph, "G", "F", 3, {"w", "n"}, {"n1", "sw"});
  SetProgram(graph);
  ExpectInEveryOrder({5, 3}, {18});
}

// F's w is an invariant of F, in whose frames G is entered with other ones each time.
TEST_F(RunProgramTest, RecursionsNest) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"n", "w"}).Const("F/one", 1, {"^F/frame_start"}).Op("F/less", "Less", {"F/n", "F/one"});
  graph.Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/sw", "Switch", {"F/w", "F/less"});
  graph.Op("F/n1", "Sub", {"F/sn", "F/one"}).Call("F/call", "F", 2, {"F/n1", "F/sw"});
  graph.Call("F/g", "G", 3, {"F/sw", "F/sn"}).Op("F/sum", "AddV2", {"F/call/return_0", "F/g/return_0"});
  Merge(&graph, "F/merge", {"F/sum", "F/sw:1"}).Result("F", "F/merge");
  AddWeighted(&graph, "G", "G", 4);
  SetProgram(graph);
  ExpectInEveryOrder({3, 2}, {2 + 3 * (1 + 2 + 3)});
}

TEST_F(RunProgramTest, WorkersShareInvariants) {
  SetProgram(Tree());
  ExpectInEveryOrder({4, 1}, {15});
  const int num_frames = 8361;  // of n = 17: each adds w once
  for (const int workers : {1, 4}) {
    RunEnvironment environment = Environment();
    environment.max_workers = workers;
    std::vector<Value> arguments;
    arguments.push_back(Number(17));
    arguments.push_back(live_.Make(2));
    runner_.On("F/all", [](KernelCall* call) {
      call->outputs[0] = Number(LiveTensors::Number(call->inputs[0]) + LiveTensors::Number(call->inputs[1]));
      return absl::OkStatus();
    });
    runner_.On("F/sum", [](KernelCall* call) {
      call->outputs[0] = Number(LiveTensors::Number(call->inputs[0]) + LiveTensors::Number(call->inputs[1]));
      return absl::OkStatus();
    });
    environment.trace = true;  // arithmetic by kernels
    const Outcome outcome = RunToEnd(environment, std::move(arguments));
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.Numbers(), std::vector<int>{2 * num_frames});
  }
  EXPECT_EQ(live_.count(), 0);
}

// F(n, w) = 0 if n < 1 else F(n - 1, w) + g(f(w)) + w, where f and g are kernels.
StaticGraph WithKernelsOfInvariants() {
  StaticGraph graph;
  graph.Arg("n").Arg("w", 1).Arg("v", 2).Call("a", "F", 1, {"n", "w"}).Call("b", "F", 3, {"n", "v"});
  graph.Retval("a/return_0").Retval("b/return_0", 1);
  graph.Function("F", {"n", "w"}).Const("F/one", 1, {"^F/frame_start"}).Op("F/less", "Less", {"F/n", "F/one"});
  graph.Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/sw", "Switch", {"F/w", "F/less"});
  graph.Op("F/n1", "Sub", {"F/sn", "F/one"}).Call("F/call", "F", 2, {"F/n1", "F/sw"});
  graph.Kernel("F/f", {"F/sw"}).Kernel("F/g", {"F/f"}).Op("F/more", "AddV2", {"F/g", "F/sw"});
  graph.Op("F/sum", "AddV2", {"F/call/return_0", "F/more"}).Const("F/zero", 0, {"^F/frame_start"});
  graph.Op("F/base", "Switch", {"F/zero", "F/less"});
  Merge(&graph, "F/merge", {"F/sum", "F/base:1"}).Result("F", "F/merge");
  return graph;
}

// The second call enters the recursion with another w.
TEST_F(RunProgramTest, FramesShareWhatKernelsMakeOfInvariants) {
  SetProgram(WithKernelsOfInvariants());
  ExpectInEveryOrder({3, 5, 7}, {30, 42});
  runner_.On("F/f", [this](KernelCall* call) {
    call->outputs[0] = live_.Make(LiveTensors::Number(call->inputs[0]) + 1);
    return absl::OkStatus();
  });
  for (const char* sum : {"F/more", "F/sum"}) {
    runner_.On(sum, [](KernelCall* call) {
      call->outputs[0] = Number(LiveTensors::Number(call->inputs[0]) + LiveTensors::Number(call->inputs[1]));
      return absl::OkStatus();
    });
  }
  for (const int workers : {1, 4}) {
    const int earlier_runs = runner_.runs("F/f");
    RunEnvironment environment = Environment();
    environment.max_workers = workers;
    std::vector<Value> arguments;
    arguments.push_back(Number(3));
    for (const int w : {5, 7}) arguments.push_back(live_.Make(w));
    const Outcome outcome = RunToEnd(environment, std::move(arguments));
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.Numbers(), (std::vector<int>{33, 45}));
    const int runs = runner_.runs("F/f") - earlier_runs;
    EXPECT_GE(runs, 2);
    EXPECT_LE(runs, workers == 1 ? 2 : 6);
  }
  EXPECT_EQ(live_.count(), 0);
}

TEST_F(RunProgramTest, ACallWaitsForTheInvariantsThatItEntersWith) {
  for (const bool is_late : {true, false}) {
    StaticGraph graph;
    graph.Arg("x").Kernel("slow", {"x"}).Call("main", "F", 1, {"x", "slow"}).Retval("main/return_0");
    AddWeighted(&graph, "F", "F", 2);
    SetProgram(graph);
    FakeRunner::Done release;
    runner_.OnAsync("slow", [&](KernelCall* call, FakeRunner::Done done) {
      call->outputs[0] = Number(5);
      if (!is_late) return done(absl::OkStatus());
      release = std::move(done);
    });
    PendingRun run;
    run.Start(Environment(), Numbers({3}));  // returns when nothing is left to do but to wait
    if (is_late) {
      EXPECT_EQ(runner_.runs("F/base"), 0);
      release(absl::OkStatus());
    }
    const Outcome outcome = run.Wait();
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.Numbers(), std::vector<int>{20});
  }
}

// The frame that is entered opens without m, which comes when the recursion is over; w is there.
TEST_F(RunProgramTest, OtherArgumentsMayComeLater) {
  StaticGraph graph;
  graph.Arg("x").Arg("w", 1).Kernel("slow", {"x"}).Call("main", "F", 1, {"x", "slow", "w"}, 2);
  graph.Retval("main/return_0").Retval("main/return_1", 1);
  graph.Function("F", {"n", "m", "w"}).Const("F/one", 1, {"^F/frame_start"}).Op("F/less", "Less", {"F/n", "F/one"});
  graph.Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/sm", "Switch", {"F/m", "F/less"});
  graph.Op("F/sw", "Switch", {"F/w", "F/less"})
      .Op("F/n1", "Sub", {"F/sn", "F/one"})
      .Op("F/m1", "Sub", {"F/sm", "F/one"});
  graph.Call("F/call", "F", 2, {"F/n1", "F/m1", "F/sw"}, 2).Op("F/sum", "AddV2", {"F/call/return_0", "F/sw"});
  Merge(&graph, "F/all", {"F/sum", "F/sw:1"}).Kernel("F/seen", {"F/all"});
  Merge(&graph, "F/rest", {"F/call/return_1", "F/sm:1"}).Result("F", "F/seen").Result("F", "F/rest", 1);
  SetProgram(graph);
  FakeRunner::Done release;
  runner_.OnAsync("slow", [&](KernelCall* call, FakeRunner::Done done) {
    call->outputs[0] = Number(50);
    release = std::move(done);
  });
  PendingRun run;
  run.Start(Environment(), Numbers({3, 7}));
  EXPECT_EQ(runner_.runs("F/seen"), 4);
  release(absl::OkStatus());
  const Outcome outcome = run.Wait();
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_EQ(outcome.Numbers(), (std::vector<int>{28, 47}));
}

TEST_F(RunProgramTest, ADeadCallEntersNoRecursion) {
  StaticGraph graph;
  graph.Arg("x").Arg("w", 1).Const("no", false).Op("sx", "Switch", {"x", "no"}).Op("sw", "Switch", {"w", "no"});
  graph.Call("main", "F", 1, {"sx:1", "sw:1"}).Retval("main/return_0");
  AddWeighted(&graph, "F", "F", 2);
  SetProgram(graph);
  ExpectInEveryOrder({5, 3}, {Outcome::kDead});
}

// w may be dead in every frame while n lives.
TEST_F(RunProgramTest, ArgumentsThatMayDieArePassedFromFrameToFrame) {
  StaticGraph graph;
  graph.Arg("x").Arg("w", 1).Arg("p", 2, DT_BOOL).Op("sw", "Switch", {"w", "p"});
  graph.Call("main", "F", 1, {"x", "sw"}).Retval("main/return_0");
  graph.Function("F", {"n", "w"}).Const("F/one", 1, {"^F/frame_start"}).Op("F/less", "Less", {"F/n", "F/one"});
  graph.Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/n1", "Sub", {"F/sn", "F/one"});
  graph.Op("F/sw", "Switch", {"F/w", "F/less"}).Kernel("F/base", {"F/sw:1"});
  graph.Call("F/call", "F", 2, {"F/n1", "F/sw"});
  Merge(&graph, "F/merge", {"F/call/return_0", "F/sn:1"}).Result("F", "F/merge");
  SetProgram(graph);
  for (const bool dies : {false, true}) {
    std::vector<Value> arguments = Numbers({3, 5, 0});
    arguments.back().boolean = dies;
    const int runs = runner_.runs("F/base");
    const Outcome outcome = RunWith(std::move(arguments));
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_EQ(outcome.Numbers(), std::vector<int>{0});
    EXPECT_EQ(runner_.runs("F/base") - runs, dies ? 0 : 1);
  }
}

TEST_F(RunProgramTest, OneTensorServesAllFramesAndLeavesThemAlive) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"n", "w"}).Const("F/one", 1, {"^F/frame_start"}).Op("F/less", "Less", {"F/n", "F/one"});
  graph.Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/sw", "Switch", {"F/w", "F/less"});
  graph.Op("F/n1", "Sub", {"F/sn", "F/one"}).Call("F/call", "F", 2, {"F/n1", "F/sw"});
  graph.Kernel("F/read", {"F/call/return_0", "F/sw"});
  Merge(&graph, "F/merge", {"F/read", "F/sw:1"}).Result("F", "F/merge");
  SetProgram(graph);
  std::vector<Value> arguments = Numbers({900});
  arguments.push_back(live_.Make(7));
  Outcome outcome = RunWith(std::move(arguments));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  ASSERT_EQ(outcome.retvals.size(), 1);
  EXPECT_EQ(LiveTensors::Number(outcome.retvals[0]), 7);
  EXPECT_EQ(runner_.runs("F/read"), 900);
  EXPECT_EQ(live_.most(), 1);
}

// F(n, w) = sum of F(n - 1, w) + w over i < 2, by a loop; F(0, w) = w
TEST_F(RunProgramTest, IterationsReadInvariants) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  const Inputs frame_start = {"^F/frame_start"};
  graph.Function("F", {"n", "w"}).Const("F/one", 1, frame_start).Const("F/two", 2, frame_start);
  graph.Const("F/zero", 0, frame_start).Op("F/less", "Less", {"F/n", "F/one"});
  graph.Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/sw", "Switch", {"F/w", "F/less"});
  graph.Op("F/n1", "Sub", {"F/sn", "F/one"}).Op("F/start", "Sub", {"F/sn", "F/sn"});
  graph.Enter("F/enter_i", "F/start", "F/loop").Enter("F/enter_s", "F/start", "F/loop");
  graph.Enter("F/enter_n", "F/n1", "F/loop", true).Enter("F/enter_w", "F/sw", "F/loop", true);
  graph.Enter("F/enter_1", "F/one", "F/loop", true).Enter("F/enter_2", "F/two", "F/loop", true);
  Merge(&graph, "F/i", {"F/enter_i", "F/next_i"});
  Merge(&graph, "F/s", {"F/enter_s", "F/next_s"});
  graph.Op("F/more", "Less", {"F/i", "F/enter_2"}).Node("F/cond", "LoopCond", {"F/more"});
  graph.Op("F/si", "Switch", {"F/i", "F/cond"}).Op("F/ss", "Switch", {"F/s", "F/cond"});
  graph.Op("F/i1", "AddV2", {"F/si:1", "F/enter_1"}).Op("F/next_i", "NextIteration", {"F/i1"});
  graph.Op("F/body", "Identity", {"F/si:1"}).Call("F/call", "F", 2, {"F/enter_n", "F/enter_w", "^F/body"});
  graph.Op("F/more_s", "AddV2", {"F/call/return_0", "F/enter_w"}).Op("F/s1", "AddV2", {"F/ss:1", "F/more_s"});
  graph.Op("F/next_s", "NextIteration", {"F/s1"}).Op("F/exit", "Exit", {"F/ss"});
  Merge(&graph, "F/merge", {"F/exit", "F/sw:1"}).Result("F", "F/merge");
  SetProgram(graph);
  EXPECT_EQ(RegionOf(built_, "F").num_invariants, 1);
  ExpectInEveryOrder({3, 3}, {66});
}

}  // namespace
}  // namespace tensorflow_recursion
