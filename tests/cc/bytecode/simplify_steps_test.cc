// What simplification takes out of steps, and what it must leave.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cc/bytecode/steps.h"
#include "tests/cc/bytecode/step_list.h"

namespace tensorflow_recursion {
namespace {

// x if x < 2 else x - 1, as a conditional is emitted: both sides move to the merge and go on behind it.
TEST(SimplifyStepsTest, SidesOfAConditionalReturnWhatTheyCompute) {
  StepList steps;
  const VirtualId x = steps.Argument();
  const VirtualId merge = steps.Value();
  const LabelId otherwise = steps.Label();
  const LabelId end = steps.Label();
  steps.Jump(Opcode::kUnless, {steps.Compute(Opcode::kLessInt32K, x, 2)}, otherwise);
  steps.Add(Opcode::kMove, {merge}, {x});
  steps.Jump(Opcode::kJump, {}, end);
  steps.Bind(otherwise);
  steps.Add(Opcode::kMove, {merge}, {steps.Compute(Opcode::kSubInt32K, x, 1)});
  steps.Jump(Opcode::kJump, {}, end);
  steps.Bind(end);
  steps.Return(merge);
  SimplifySteps(steps.function());
  EXPECT_EQ(steps.Text(),
            "UnlessLessInt32K v0, 2 -> L0\n"
            "Return v0\n"
            "L0:\n"
            "v3 = SubInt32K v0, 1\n"
            "Return v3\n");
}

TEST(SimplifyStepsTest, ComparisonThatIsReadTwiceStaysAValue) {
  StepList steps;
  const VirtualId x = steps.Argument();
  const LabelId otherwise = steps.Label();
  const VirtualId is_less = steps.Compute(Opcode::kLessInt32K, x, 2);
  steps.Jump(Opcode::kUnless, {is_less}, otherwise);
  steps.Return(x);
  steps.Bind(otherwise);
  steps.Return(is_less);
  const std::string before = steps.Text();
  SimplifySteps(steps.function());
  EXPECT_EQ(steps.Text(), before);
}

// In every iteration it would be computed again, of variables that have changed since.
TEST(SimplifyStepsTest, ComparisonBeforeALoopIsNotMadeInIt) {
  StepList steps;
  const VirtualId x = steps.Argument();
  const LabelId begin = steps.Label();
  const LabelId behind = steps.Label();
  const VirtualId is_less = steps.Compute(Opcode::kLessInt32K, x, 2);
  steps.Bind(begin);
  steps.Jump(Opcode::kUnless, {is_less}, behind);
  steps.function()->steps.back().loop = 1;
  steps.Jump(Opcode::kRepeat, {}, begin);
  steps.Bind(behind);
  steps.Return(x);
  const std::string before = steps.Text();
  SimplifySteps(steps.function());
  EXPECT_EQ(steps.Text(), before);
}

TEST(SimplifyStepsTest, WhatNobodyReadsIsDroppedUnlessItMayFail) {
  StepList steps;
  const VirtualId x = steps.Argument();
  const VirtualId sum = steps.Compute(Opcode::kAddInt32K, x, 1);
  steps.Compute(Opcode::kMulInt32K, sum, 3);  // alone reads the sum
  steps.Add(Opcode::kFloorDivInt32, {steps.Value()}, {x, x}).kernel = 0;
  steps.Add(Opcode::kCall, {steps.Value()}, {});
  steps.Return(x);
  SimplifySteps(steps.function());
  EXPECT_EQ(steps.Text(),
            "v3 = FloorDivInt32 v0, v0\n"
            "v4 = Call\n"
            "Return v0\n");
}

TEST(SimplifyStepsTest, ArgumentsOfCallsAreComputedInTheirWindow) {
  StepList steps;
  const VirtualId x = steps.Argument();
  const VirtualId window = steps.InWindow();
  const VirtualId result = steps.Value();
  steps.Add(Opcode::kMove, {window}, {steps.Compute(Opcode::kSubInt32K, x, 1)});
  steps.Add(Opcode::kCall, {result}, {window});
  steps.Return(result);
  SimplifySteps(steps.function());
  EXPECT_EQ(steps.Text(),
            "v1 = SubInt32K v0, 1\n"
            "v2 = Call v1\n"
            "Return v2\n");
}

// The call in between would overwrite the window.
TEST(SimplifyStepsTest, ArgumentsThatOutliveACallAreMoved) {
  StepList steps;
  const VirtualId x = steps.Argument();
  const VirtualId window = steps.InWindow();
  const VirtualId first = steps.Value();
  const VirtualId second = steps.Value();
  const VirtualId kept = steps.Compute(Opcode::kSubInt32K, x, 1);
  steps.Add(Opcode::kCall, {first}, {});
  steps.Add(Opcode::kMove, {window}, {kept});
  steps.Add(Opcode::kCall, {second}, {window});
  steps.Return(second);
  const std::string before = steps.Text();
  SimplifySteps(steps.function());
  EXPECT_EQ(steps.Text(), before);
}

// A function of many results has a move for each of them before its return.
TEST(SimplifyStepsTest, ManyMovesBeforeAReturnTakeNoMoreRoundsThanOne) {
  for (const int count : {1, 100}) {
    StepList steps;
    const VirtualId x = steps.Argument();
    std::vector<VirtualId> moved;
    for (int i = 0; i < count; ++i) {
      moved.push_back(steps.Value());
      steps.Add(Opcode::kMove, {moved.back()}, {x});
    }
    steps.Add(Opcode::kReturnAll, {}, moved);
    EXPECT_LE(SimplifySteps(steps.function()), 3) << count;
    ASSERT_EQ(steps.function()->steps.size(), 1);
    EXPECT_EQ(steps.function()->steps[0].operands, std::vector<VirtualId>(count, x));
  }
}

TEST(SimplifyStepsTest, AMoveOfWhatWasMovedBeforeReturnsTheFirst) {
  StepList steps;
  const VirtualId x = steps.Argument();
  const VirtualId first = steps.Value();
  const VirtualId second = steps.Value();
  steps.Add(Opcode::kMove, {first}, {x});
  steps.Add(Opcode::kMove, {second}, {first});
  steps.Return(second);
  SimplifySteps(steps.function());
  EXPECT_EQ(steps.Text(), "Return v0\n");
}

}  // namespace
}  // namespace tensorflow_recursion
