// Which values share a register, and where the windows of calls begin.
// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/register_allocation.h"

#include <gtest/gtest.h>

#include "tests/cc/bytecode/step_list.h"

namespace tensorflow_recursion {
namespace {

TEST(RegisterAllocationTest, ValuesThatFollowOneAnotherShareARegister) {
  StepList steps;
  const VirtualId x = steps.Argument();
  const VirtualId y = steps.Compute(Opcode::kAddInt32K, x, 1);
  const VirtualId z = steps.Compute(Opcode::kMulInt32K, y, 2);
  steps.Return(z);
  const RegisterAllocation allocation = AllocateRegisters(*steps.function());
  EXPECT_EQ(allocation.registers[x], 0);
  EXPECT_EQ(allocation.registers[y], 0);
  EXPECT_EQ(allocation.registers[z], 0);
}

TEST(RegisterAllocationTest, ValuesThatLiveAtTheSameTimeDoNot) {
  StepList steps;
  const VirtualId x = steps.Argument();
  const VirtualId y = steps.Compute(Opcode::kAddInt32K, x, 1);
  const VirtualId sum = steps.Value();
  steps.Add(Opcode::kAddInt32, {sum}, {x, y});
  steps.Return(sum);
  const RegisterAllocation allocation = AllocateRegisters(*steps.function());
  EXPECT_EQ(allocation.registers[x], 0);
  EXPECT_EQ(allocation.registers[y], 1);
  EXPECT_EQ(allocation.registers[sum], 0);  // where x was read for the last time
}

TEST(RegisterAllocationTest, ArgumentsThatNobodyReadsHaveTheirPlace) {
  StepList steps;
  steps.Argument();
  const VirtualId second = steps.Argument();
  steps.Return(second);
  EXPECT_EQ(AllocateRegisters(*steps.function()).registers[second], 1);
}

// n + F(n - 1): register 0 holds n across the call, the next word says where to return.
TEST(RegisterAllocationTest, WindowBeginsBehindWhatTheCallerNeeds) {
  StepList steps;
  const VirtualId n = steps.Argument();
  const VirtualId window = steps.InWindow();
  const VirtualId result = steps.Value();
  const VirtualId sum = steps.Value();
  steps.Add(Opcode::kSubInt32K, {window}, {n}).constant = 1;
  steps.Add(Opcode::kCall, {result}, {window});
  steps.Add(Opcode::kAddInt32, {sum}, {n, result});
  steps.Return(sum);
  const RegisterAllocation allocation = AllocateRegisters(*steps.function());
  EXPECT_EQ(allocation.windows[1], 2);
  EXPECT_EQ(allocation.registers[window], 2);
  EXPECT_EQ(allocation.registers[result], 1);
  EXPECT_EQ(allocation.registers[sum], 0);
  EXPECT_EQ(allocation.spare, 3);
}

// i = 0; while i < n: i += 1. The last read of n stands before j is written, but its next iteration behind it.
TEST(RegisterAllocationTest, WhatALoopReadsLivesToItsEnd) {
  StepList steps;
  const VirtualId n = steps.Argument();
  const VirtualId i = steps.Value();
  const LabelId begin = steps.Label();
  const LabelId behind = steps.Label();
  steps.Add(Opcode::kConstant, {i}, {}).constant = 0;
  steps.Bind(begin);
  steps.Jump(Opcode::kUnlessLessInt32, {i, n}, behind);
  const VirtualId j = steps.Compute(Opcode::kAddInt32K, i, 1);
  steps.Add(Opcode::kMove, {i}, {j});
  steps.Jump(Opcode::kRepeat, {}, begin);
  steps.Bind(behind);
  steps.Return(i);
  const RegisterAllocation allocation = AllocateRegisters(*steps.function());
  EXPECT_EQ(allocation.registers[n], 0);
  EXPECT_EQ(allocation.registers[i], 1);
  EXPECT_EQ(allocation.registers[j], 2);
}

}  // namespace
}  // namespace tensorflow_recursion
