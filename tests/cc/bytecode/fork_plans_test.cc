// Calls that are split off a running one and joined again: one interpreter after the other, in a single thread.
// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/fork_plans.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cc/bytecode/code_builder.h"
#include "cc/bytecode/interpreter.h"
#include "cc/values/scalar_operators.h"
#include "tests/cc/bytecode/interpreting.h"

namespace tensorflow_recursion {
namespace {

using State = Interpreter::State;
using Depths = std::vector<int64_t>;

class ForkPlansTest : public ::testing::Test {
 protected:
  uint16_t Int(int32_t number) { return builder_.Constant(ToBits(number)); }

  int Declare(const std::string& name, int num_arguments, int num_results) {
    CodeFunction function;
    function.name = name;
    function.arguments.assign(num_arguments, kIntRegister);
    function.results.assign(num_results, kIntRegister);
    return builder_.Declare(std::move(function));
  }

  void End() { ASSERT_TRUE(builder_.End().ok()); }

  // fib(n) = n if n < 2 else fib(n - 1) + fib(n - 2)
  int WriteFib() {
    const int fib = Declare("Fib", 1, 1);
    builder_.Begin(fib);
    builder_.Emit(Opcode::kReturnUnlessGreaterEqualInt32K, 0, 0, Int(2));
    builder_.EmitCall(Opcode::kCallSubInt32K, 1, fib, 2, {2, 0, Int(1)});
    builder_.EmitCall(Opcode::kCallSubInt32K, 0, fib, 3, {3, 0, Int(2)});
    builder_.Emit(Opcode::kReturnAddInt32, 0, 1, 0);
    End();
    return fib;
  }

  // pair(n) = (n, 1) if n < 1 else (a + c, b + d), where (a, b) = pair(n - 1) and (c, d) = pair(n - 2)
  int WritePair() {
    const int pair = Declare("Pair", 1, 2);
    builder_.Begin(pair);
    const CodeBuilder::Label otherwise = builder_.NewLabel();
    builder_.EmitJump(Opcode::kUnlessLessInt32K, 0, Int(1), otherwise);
    builder_.Emit(Opcode::kConstant, 1, Int(1));
    builder_.Emit(Opcode::kReturnAll);
    builder_.Bind(otherwise);
    builder_.Emit(Opcode::kSubInt32K, 2, 0, Int(1));
    builder_.Emit(Opcode::kCall, 2, pair, 2);
    builder_.Emit(Opcode::kSubInt32K, 5, 0, Int(2));
    builder_.Emit(Opcode::kCall, 5, pair, 5);
    builder_.Emit(Opcode::kAddInt32, 0, 2, 5);
    builder_.Emit(Opcode::kAddInt32, 1, 3, 6);
    builder_.Emit(Opcode::kReturnAll);
    End();
    return pair;
  }

  std::unique_ptr<Interpreter> NewInterpreter(int64_t max_depth = kMuch) {
    return std::make_unique<Interpreter>(code_, max_depth, nullptr, nullptr);
  }

  // Runs to the end, splits off what it can every `budget` calls, and makes those calls, likewise, when they are
  // needed. Every third is not made by another interpreter but here after all.
  void RunWithForks(Interpreter* interpreter, int64_t budget) {
    std::vector<ForkedCall> forks;
    while (true) {
      int64_t left = budget;
      switch (interpreter->Resume(&left)) {
        case State::kPaused:
          if (auto fork = interpreter->Fork()) forks.push_back(*std::move(fork));
          break;
        case State::kJoins:
          ASSERT_FALSE(forks.empty());
          Join(interpreter, forks.back(), budget);
          forks.pop_back();
          break;
        case State::kDone:
          ASSERT_TRUE(forks.empty());
          return;
        default:
          FAIL();
      }
    }
  }

  void Join(Interpreter* interpreter, const ForkedCall& fork, int64_t budget) {
    if (++num_joined_ % 3 == 0) return interpreter->CallAfterAll();
    const std::unique_ptr<Interpreter> other = NewInterpreter();
    ASSERT_TRUE(other->StartForked(fork));
    RunWithForks(other.get(), budget);
    interpreter->SupplyResults(other->results());
  }

  Code code_;
  CodeBuilder builder_{&code_};
  int num_joined_ = 0;
};

TEST_F(ForkPlansTest, ForkedCallsGiveTheSameResults) {
  const int fib = WriteFib();
  const int pair = WritePair();
  AddForkPlans(&code_);
  ASSERT_EQ(code_.fork_plans.size(), 2u);
  for (const int64_t budget : {1, 2, 3, 7, 50}) {
    const std::unique_ptr<Interpreter> interpreter = NewInterpreter();
    ASSERT_TRUE(interpreter->Start(fib, {ToBits(18)}, 1));
    RunWithForks(interpreter.get(), budget);
    EXPECT_EQ(FromBits<int32_t>(interpreter->results()[0]), 2584);
    ASSERT_TRUE(interpreter->Start(pair, {ToBits(14)}, 1));
    RunWithForks(interpreter.get(), budget);
    EXPECT_EQ(FromBits<int32_t>(interpreter->results()[0]), -377);
    EXPECT_EQ(FromBits<int32_t>(interpreter->results()[1]), 987);
  }
  EXPECT_GT(num_joined_, 1000);
}

TEST_F(ForkPlansTest, CallOfTheOutermostFrameIsSplitOffFirst) {
  const int fib = WriteFib();
  AddForkPlans(&code_);
  const std::unique_ptr<Interpreter> interpreter = NewInterpreter();
  ASSERT_TRUE(interpreter->Start(fib, {ToBits(30)}, 5));
  int64_t budget = 20;
  ASSERT_EQ(interpreter->Resume(&budget), State::kPaused);
  for (const int64_t depth : {5, 6, 7}) {
    const std::optional<ForkedCall> fork = interpreter->Fork();
    ASSERT_TRUE(fork.has_value());
    EXPECT_EQ(fork->depth, depth);
    EXPECT_EQ(FromBits<int32_t>(fork->registers[0]), 30 - (depth - 5));
  }
}

// f(n) = f(f(n - 1)): the outer call needs what the inner one returns. So does the result, of the next one.
TEST_F(ForkPlansTest, CallsThatNeedTheResultStay) {
  const int nested = Declare("Nested", 1, 1);
  builder_.Begin(nested);
  builder_.Emit(Opcode::kSubInt32K, 3, 0, Int(1));
  builder_.Emit(Opcode::kCall, 1, nested, 3);
  builder_.Emit(Opcode::kMove, 3, 1);
  builder_.Emit(Opcode::kCall, 1, nested, 3);
  builder_.Emit(Opcode::kReturn, 1);
  End();
  AddForkPlans(&code_);
  EXPECT_TRUE(code_.fork_plans.empty());
}

// What is kept in the word below the window of the first call is overwritten by it, and so not there for the second.
TEST_F(ForkPlansTest, CallsWhoseArgumentsAreNotThereStay) {
  const int callee = Declare("Callee", 1, 1);
  const int caller = Declare("Caller", 2, 1);
  builder_.Begin(callee);
  builder_.Emit(Opcode::kReturn, 0);
  End();
  builder_.Begin(caller);
  builder_.Emit(Opcode::kMove, 3, 0);
  builder_.Emit(Opcode::kCall, 0, callee, 3);
  builder_.Emit(Opcode::kAddInt32, 4, 1, 2);  // 2 is the word below
  builder_.Emit(Opcode::kCall, 2, callee, 4);
  builder_.Emit(Opcode::kAddInt32, 4, 1, 2);  // 2 is a result
  builder_.Emit(Opcode::kCall, 0, callee, 4);
  builder_.Emit(Opcode::kMove, 4, 1);
  builder_.Emit(Opcode::kCall, 0, callee, 4);
  builder_.Emit(Opcode::kReturn, 0);
  End();
  AddForkPlans(&code_);
  // The last call needs none of the others; all of these are made before it as ever.
  ASSERT_EQ(code_.fork_plans.size(), 3u);
  for (const ForkPlan& plan : code_.fork_plans) {
    EXPECT_EQ(code_.instructions[plan.rest - 2].opcode, Opcode::kCall);
    EXPECT_EQ(code_.instructions[plan.rest - 3].opcode, Opcode::kMove);
    EXPECT_EQ(code_.FunctionAt(plan.begin)->name, "Caller");
    EXPECT_EQ(code_.FunctionAt(plan.rest)->name, "Caller");
  }
}

// A fork's path is its own frames, and of those above the outermost three and the innermost three.
TEST_F(ForkPlansTest, ErrorsKnowTheCallsAboveAFork) {
  const int fib = WriteFib();
  AddForkPlans(&code_);
  std::unique_ptr<Interpreter> interpreter = NewInterpreter();
  ASSERT_TRUE(interpreter->Start(fib, {ToBits(40)}, 1));
  int64_t budget = 30;
  ASSERT_EQ(interpreter->Resume(&budget), State::kPaused);
  std::optional<ForkedCall> fork;
  for (int i = 0; i < 20; ++i) fork = interpreter->Fork();
  ASSERT_TRUE(fork.has_value());
  EXPECT_EQ(fork->depth, 20);
  interpreter = NewInterpreter(/*max_depth=*/22);
  ASSERT_TRUE(interpreter->StartForked(*fork));
  budget = 30;
  ASSERT_EQ(interpreter->Resume(&budget), State::kTooDeep);
  Depths depths;
  interpreter->ForEachFrame([&](int64_t depth, const CodeFunction&) { depths.push_back(depth); });
  EXPECT_EQ(depths, (Depths{22, 21, 20, 19, 18, 17, 3, 2, 1}));
}

// Another thread would read the record after an error had ended it here.
TEST_F(ForkPlansTest, NothingIsSplitOffBesideRecords) {
  const int fib = WriteFib();
  const int beside = Declare("Beside", 1, 1);
  builder_.Begin(beside);
  builder_.Emit(Opcode::kMakeRecord, 1, builder_.Record({"retain", "Beside", {tensorflow::DT_INT32}}));
  builder_.Emit(Opcode::kKeepNumber, 1, 0, 0);
  builder_.Emit(Opcode::kMove, 3, 0);
  builder_.Emit(Opcode::kCall, 0, fib, 3);
  builder_.Emit(Opcode::kReturn, 0);
  End();
  AddForkPlans(&code_);
  for (const int function : {fib, beside}) {
    Interpreter interpreter(code_, kMuch, nullptr, nullptr);
    ASSERT_TRUE(interpreter.Start(function, {ToBits(int32_t{20})}, 1));
    int64_t budget = 50;
    EXPECT_EQ(interpreter.Resume(&budget), State::kPaused);
    EXPECT_EQ(interpreter.Fork().has_value(), function == fib);
  }
}

}  // namespace
}  // namespace tensorflow_recursion
