// Loops: around calls, in bodies, and what they carry.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cc/executor/run_program_fixture.h"
#include "tests/cc/values/numbers.h"

namespace tensorflow_recursion {
namespace {

TEST_F(RunProgramTest, CallsFromLoops) {
  StaticGraph graph;
  graph.Arg("n");
  AddSumOfFibs(&graph, "", "n", {}, 1).Retval("exit");
  AddFib(&graph, 2);
  SetProgram(graph);
  ExpectInEveryOrder({0}, {0});
  ExpectInEveryOrder({8}, {0 + 1 + 1 + 2 + 3 + 5 + 8 + 13});
}

TEST_F(RunProgramTest, LoopsInBodies) {
  StaticGraph graph;
  graph.Arg("x0").Call("a", "F", 1, {"x0"}).Call("b", "F", 10, {"a/return_0"}).Retval("b/return_0");
  graph.Function("F", {"n"});
  AddSumOfFibs(&graph, "F/", "F/n", {"^F/frame_start"}, 2).Result("F", "F/exit");
  AddFib(&graph, 3);
  SetProgram(graph);
  ExpectInEveryOrder({4}, {0 + 1 + 1 + 2});              // F(4)
  ExpectInEveryOrder({5}, {0 + 1 + 1 + 2 + 3 + 5 + 8});  // F(7)
}

TEST_F(RunProgramTest, LoopsCarryTensors) {
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
TEST_F(RunProgramTest, LoopVariablesMayShareTheirNextIteration) {
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

}  // namespace
}  // namespace tensorflow_recursion
