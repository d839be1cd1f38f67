// Branches that are not taken: the calls, merges and unions that learn of it.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cc/executor/run_program_fixture.h"
#include "tests/cc/values/numbers.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_BOOL;

// --- Dead calls -----------------------------------------------------------------------------------

TEST_F(RunProgramTest, ACallOfDeadArgumentsOpensNoFrame) {
  StaticGraph graph;
  graph.Arg("x").Const("no", false).Op("switch", "Switch", {"x", "no"});
  graph.Call("main", "F", 1, {"switch:1", "switch:1"}).Retval("main/return_0");
  graph.Function("F", {"a", "b"})
      .Const("F/c", 1, {"^F/frame_start"})
      .Kernel("F/k", {"F/c"}, 1, true)
      .Result("F", "F/k");
  SetProgram(graph);
  ExpectInEveryOrder({1}, {Outcome::kDead});
  EXPECT_EQ(runner_.runs("F/k"), 0);
}

TEST_F(RunProgramTest, ACallOfSomeDeadArgumentsRunsAsFarAsTheOthersGo) {
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
TEST_F(RunProgramTest, DeadArgumentsAloneOpenNoFrameWhileOthersAreAwaited) {
  StaticGraph graph;
  graph.Arg("x").Const("no", false).Op("switch", "Switch", {"x", "no"});
  graph.Kernel("slow", {"x"}).Const("zero", 0).Op("late_no", "Less", {"slow", "zero"});
  graph.Op("late_switch", "Switch", {"x", "late_no"});
  graph.Call("main", "F", 1, {"switch:1", "late_switch:1"}).Retval("main/return_0");
  graph.Function("F", {"a", "b"})
      .Const("F/c", 1, {"^F/frame_start"})
      .Kernel("F/k", {"F/c"}, 1, true)
      .Result("F", "F/k");
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

// This differs from the test before in that the second argument turns out to be live.
TEST_F(RunProgramTest, ALiveArgumentAfterADeadOneOpensTheFrame) {
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

TEST_F(RunProgramTest, AConstantArgumentOfADeadBranchOpensNoFrame) {
  StaticGraph graph;
  graph.Arg("x").Const("no", false).Op("switch", "Switch", {"x", "no"}).Op("pivot", "Identity", {"switch:1"});
  graph.Node("control", "NoOp", {"^pivot"}).Const("c", 1, {"^control"});
  graph.Call("main", "F", 1, {"c"}).Retval("main/return_0");
  graph.Function("F", {"a"}).Kernel("F/k", {"F/a"}, 1, true).Result("F", "F/k");
  SetProgram(graph);
  ExpectInEveryOrder({1}, {Outcome::kDead});
  EXPECT_EQ(runner_.runs("F/k"), 0);
}

// --- Merges and unions ----------------------------------------------------------------------------

TEST_F(RunProgramTest, AMergeOfDeadInputsIsDead) {
  StaticGraph graph;
  graph.Arg("x").Const("no", false).Op("switch", "Switch", {"x", "no"});
  graph.Op("a", "Neg", {"switch:1"}).Op("b", "Neg", {"a"});
  Merge(&graph, "dead", {"a", "b"});
  Merge(&graph, "live", {"dead", "switch"}).Retval("dead").Retval("live", 1).Retval("live:1", 2);
  SetProgram(graph);
  ExpectInEveryOrder({4}, {Outcome::kDead, 4, 1});
}

TEST_F(RunProgramTest, MergesOfManyInputsCountTheirDeaths) {
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

TEST_F(RunProgramTest, AControlTriggerFiresAfterDeathsToo) {
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
TEST_F(RunProgramTest, AMergeWaitsForDeadControlsWithoutDying) {
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

TEST_F(RunProgramTest, AMergeComesAfterTheEffectsThatItWaitsFor) {
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
TEST_F(RunProgramTest, AMergeInADeadBranchHoldsUpNoMergeOutside) {
  StaticGraph graph;
  AddMain(&graph, "F", 3);
  graph.Function("F", {"x", "p", "q"}).Const("F/zero", 0, {"^F/frame_start"});
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

// --- Other sources of death -----------------------------------------------------------------------

TEST_F(RunProgramTest, KernelsMayLeaveAnOutputDead) {
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

TEST_F(RunProgramTest, ACaseTakesTheLastBranchWhenItsIndexIsOutOfRange) {
  StaticGraph graph;
  graph.Arg("x").Arg("i", 1).Node("case", "_SwitchN", {"x", "i"}, {{"T", kInt}, {"num_outs", 3}});
  Merge(&graph, "merge", {"case", "case:1", "case:2"}).Retval("merge").Retval("merge:1", 1);
  SetProgram(graph);
  ExpectInEveryOrder({8, 0}, {8, 0});
  ExpectInEveryOrder({8, 1}, {8, 1});
  ExpectInEveryOrder({8, -1}, {8, 2});
  ExpectInEveryOrder({8, 3}, {8, 2});
}

}  // namespace
}  // namespace tensorflow_recursion
