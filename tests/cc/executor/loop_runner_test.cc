// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/loop_runner.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/cc/executor/worker_parts_fixture.h"
#include "tests/cc/values/numbers.h"

namespace tensorflow_recursion {
namespace {

// main(n, t): for i in range(n): t = step(t, w), with w = t from before the loop.
class LoopRunnerTest : public WorkerPartsTest {
 protected:
  void Open() {
    StaticGraph graph;
    graph.Arg("n").Arg("t", 1).Const("zero", 0).Enter("enter_i", "zero", "loop").Enter("enter_n", "n", "loop", true);
    graph.Enter("enter_t", "t", "loop").Enter("w", "t", "loop", true);
    Merge(&graph, "i", {"enter_i", "next_i"});
    Merge(&graph, "v", {"enter_t", "next_v"});
    graph.Op("less", "Less", {"i", "enter_n"}).Node("cond", "LoopCond", {"less"});
    graph.Op("switch_i", "Switch", {"i", "cond"}).Op("switch_v", "Switch", {"v", "cond"});
    graph.Const("one", 1, {"^switch_i"})
        .Op("add", "AddV2", {"switch_i:1", "one"})
        .Op("next_i", "NextIteration", {"add"});
    graph.Kernel("step", {"switch_v:1", "w"}).Op("next_v", "NextIteration", {"step"});
    graph.Op("exit_v", "Exit", {"switch_v"}).Retval("exit_v").Op("exit_i", "Exit", {"switch_i"}).Retval("exit_i", 1);
    runner_.On("step", [this](KernelCall* call) {
      call->outputs[0] = live_.Make(LiveTensors::Number(call->inputs[0]) + LiveTensors::Number(call->inputs[1]));
      return absl::OkStatus();
    });
    SetProgram(graph);
  }
};

TEST_F(LoopRunnerTest, EachIterationTakesTheValuesOfTheLast) {
  Open();
  parts_->calls.OpenRoot({Number(3), live_.Make(2)});
  WorkToTheEnd();
  EXPECT_EQ(Retvals(), (std::vector<int>{2 + 2 + 2 + 2, 3}));
  EXPECT_EQ(live_.count(), 0) << "what every iteration borrowed went with the frame around the loop";
}

TEST_F(LoopRunnerTest, ALoopWhoseConditionNeverHoldsHandsItsVariablesOut) {
  Open();
  parts_->calls.OpenRoot({Number(0), live_.Make(2)});
  WorkToTheEnd();
  EXPECT_EQ(runner_.runs("step"), 0);
  EXPECT_EQ(Retvals(), (std::vector<int>{2, 0}));
  EXPECT_EQ(live_.count(), 0);
}

TEST_F(LoopRunnerTest, IterationsEndAsTheLoopGoesOn) {
  Open();
  parts_->calls.OpenRoot({Number(50), live_.Make(1)});
  WorkToTheEnd();
  EXPECT_EQ(Retvals(), (std::vector<int>{51, 50}));
  EXPECT_LE(live_.most(), 4) << "the first, which all borrow, and those of an iteration and the next";
}

TEST_F(LoopRunnerTest, AnIterationCostsWork) {
  Open();
  const int budget = parts_->context.budget;
  parts_->calls.OpenRoot({Number(7), live_.Make(1)});
  WorkToTheEnd();
  Retvals();
  EXPECT_LE(parts_->context.budget, budget - 8) << "seven iterations, and the one that finds the condition false";
}

}  // namespace
}  // namespace tensorflow_recursion
