// Programs written by hand: what instructions do, how calls nest, what suspends a call.
// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/interpreter.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "cc/bytecode/code_builder.h"
#include "cc/bytecode/disassembler.h"
#include "cc/values/scalar_operators.h"
#include "tests/cc/bytecode/interpreting.h"

namespace tensorflow_recursion {
namespace {

using State = Interpreter::State;

State Resume(Interpreter* interpreter, int64_t budget = kMuch) { return interpreter->Resume(&budget); }

CodeFunction Signature(const std::string& name, int num_arguments, int num_results = 1) {
  CodeFunction function;
  function.name = name;
  function.arguments.assign(num_arguments, kIntRegister);
  function.results.assign(num_results, kIntRegister);
  return function;
}

class InterpreterTest : public ::testing::Test {
 protected:
  uint16_t Int(int32_t number) { return builder_.Constant(ToBits(number)); }

  void End() { ASSERT_TRUE(builder_.End().ok()); }

  // Runs a function to its end.
  State Run(int function, const std::vector<int32_t>& arguments, int64_t max_depth = kMuch) {
    interpreter_ = std::make_unique<Interpreter>(code_, max_depth, nullptr, nullptr);
    std::vector<uint64_t> bits;
    for (const int32_t argument : arguments) bits.push_back(ToBits(argument));
    EXPECT_TRUE(interpreter_->Start(function, bits, 1));
    return Resume(interpreter_.get());
  }

  int32_t ResultOf(int function, const std::vector<int32_t>& arguments) {
    EXPECT_EQ(Run(function, arguments), State::kDone);
    return Result();
  }

  int32_t Result(int index = 0) { return FromBits<int32_t>(interpreter_->results()[index]); }

  // fib(n) = n if n < 2 else fib(n - 1) + fib(n - 2)
  int WriteFib() {
    const int fib = builder_.Declare(Signature("Fib", 1));
    builder_.Begin(fib);
    const CodeBuilder::Label otherwise = builder_.NewLabel();
    builder_.EmitJump(Opcode::kUnlessLessInt32K, 0, Int(2), otherwise);
    builder_.Emit(Opcode::kReturn, 0);
    builder_.Bind(otherwise);
    builder_.Emit(Opcode::kSubInt32K, 2, 0, Int(1));
    builder_.Emit(Opcode::kCall, 1, fib, 2);
    builder_.Emit(Opcode::kSubInt32K, 3, 0, Int(2));
    builder_.Emit(Opcode::kCall, 0, fib, 3);
    builder_.Emit(Opcode::kAddInt32, 0, 1, 0);
    builder_.Emit(Opcode::kReturn, 0);
    End();
    return fib;
  }

  // sum(n) = 0 if n < 1 else n + sum(n - 1)
  int WriteSum() {
    const int sum = builder_.Declare(Signature("Sum", 1));
    builder_.Begin(sum);
    const CodeBuilder::Label otherwise = builder_.NewLabel();
    builder_.EmitJump(Opcode::kUnlessLessInt32K, 0, Int(1), otherwise);
    builder_.Emit(Opcode::kReturn, 0);
    builder_.Bind(otherwise);
    builder_.AddCall("Sum/call", "Sum");
    builder_.Emit(Opcode::kSubInt32K, 2, 0, Int(1));
    builder_.Emit(Opcode::kCall, 1, sum, 2);
    builder_.Emit(Opcode::kAddInt32, 0, 0, 1);
    builder_.Emit(Opcode::kReturn, 0);
    End();
    return sum;
  }

  // tak(x, y, z) = tak(tak(x-1, y, z), tak(y-1, z, x), tak(z-1, x, y)) if y < x else z
  int WriteTak() {
    const int tak = builder_.Declare(Signature("Tak", 3));
    builder_.Begin(tak);
    const CodeBuilder::Label otherwise = builder_.NewLabel();
    builder_.EmitJump(Opcode::kUnlessLessInt32, 1, 0, otherwise);
    for (int i = 0; i < 3; ++i) {
      const int window = 8;
      builder_.Emit(Opcode::kSubInt32K, window, i, Int(1));
      builder_.Emit(Opcode::kMove, window + 1, (i + 1) % 3);
      builder_.Emit(Opcode::kMove, window + 2, (i + 2) % 3);
      builder_.Emit(Opcode::kCall, 4 + i, tak, window);
    }
    builder_.Emit(Opcode::kCall, 0, tak, 4);
    builder_.Emit(Opcode::kReturn, 0);
    builder_.Bind(otherwise);
    builder_.Emit(Opcode::kReturn, 2);
    End();
    return tak;
  }

  Code code_;
  CodeBuilder builder_{&code_};
  std::unique_ptr<Interpreter> interpreter_;
};

TEST_F(InterpreterTest, CallsNest) {
  const int fib = WriteFib();
  EXPECT_EQ(ResultOf(fib, {1}), 1);
  EXPECT_EQ(ResultOf(fib, {20}), 6765);
}

TEST_F(InterpreterTest, CallsAreArgumentsOfCalls) {
  const int tak = WriteTak();
  EXPECT_EQ(ResultOf(tak, {18, 12, 6}), 7);
}

TEST_F(InterpreterTest, AMillionLevelsDeep) {
  const int sum = WriteSum();
  EXPECT_EQ(ResultOf(sum, {1'000'000}), 1784293664);  // 500000500000 modulo 2^32
}

// ack(m, n) = n + 1 if m < 1, ack(m - 1, 1) if n < 1, else ack(m - 1, ack(m, n - 1))
TEST_F(InterpreterTest, Ackermann) {
  const int ack = builder_.Declare(Signature("Ack", 2));
  builder_.Begin(ack);
  const CodeBuilder::Label m = builder_.NewLabel();
  const CodeBuilder::Label n = builder_.NewLabel();
  builder_.EmitJump(Opcode::kUnlessLessInt32K, 0, Int(1), m);
  builder_.Emit(Opcode::kAddInt32K, 0, 1, Int(1));
  builder_.Emit(Opcode::kReturn, 0);
  builder_.Bind(m);
  builder_.EmitJump(Opcode::kUnlessLessInt32K, 1, Int(1), n);
  builder_.Emit(Opcode::kSubInt32K, 3, 0, Int(1));
  builder_.Emit(Opcode::kConstant, 4, Int(1));
  builder_.Emit(Opcode::kCall, 0, ack, 3);
  builder_.Emit(Opcode::kReturn, 0);
  builder_.Bind(n);
  builder_.Emit(Opcode::kSubInt32K, 3, 0, Int(1));
  builder_.Emit(Opcode::kMove, 5, 0);
  builder_.Emit(Opcode::kSubInt32K, 6, 1, Int(1));
  builder_.Emit(Opcode::kCall, 4, ack, 5);
  builder_.Emit(Opcode::kCall, 0, ack, 3);
  builder_.Emit(Opcode::kReturn, 0);
  End();
  EXPECT_EQ(ResultOf(ack, {2, 3}), 9);
  EXPECT_EQ(ResultOf(ack, {3, 5}), 253);
}

TEST_F(InterpreterTest, FunctionsCallOneAnother) {
  const int even = builder_.Declare(Signature("Even", 1));
  const int odd = builder_.Declare(Signature("Odd", 1));
  for (const int function : {even, odd}) {
    builder_.Begin(function);
    const CodeBuilder::Label otherwise = builder_.NewLabel();
    builder_.EmitJump(Opcode::kUnlessEqualInt32K, 0, Int(0), otherwise);
    builder_.Emit(Opcode::kConstant, 0, Int(function == even));
    builder_.Emit(Opcode::kReturn, 0);
    builder_.Bind(otherwise);
    builder_.Emit(Opcode::kSubInt32K, 2, 0, Int(1));
    builder_.Emit(Opcode::kCall, 0, function == even ? odd : even, 2);
    builder_.Emit(Opcode::kReturn, 0);
    End();
  }
  EXPECT_EQ(ResultOf(even, {1001}), 0);
  EXPECT_EQ(ResultOf(odd, {1001}), 1);
}

// divmod(x, y) = (x // y, x % y)
TEST_F(InterpreterTest, SeveralResultsLieInTheFirstRegisters) {
  const int divmod = builder_.Declare(Signature("DivMod", 2, 2));
  const int caller = builder_.Declare(Signature("Caller", 2, 1));
  builder_.Begin(divmod);
  builder_.Emit(Opcode::kFloorDivInt32, 2, 0, 1);
  builder_.Emit(Opcode::kFloorModInt32, 1, 0, 1);
  builder_.Emit(Opcode::kMove, 0, 2);
  builder_.Emit(Opcode::kReturnAll);
  End();
  builder_.Begin(caller);
  builder_.Emit(Opcode::kMove, 3, 0);
  builder_.Emit(Opcode::kMove, 4, 1);
  builder_.Emit(Opcode::kCall, 3, divmod, 3);
  builder_.Emit(Opcode::kMulInt32K, 0, 3, Int(100));
  builder_.Emit(Opcode::kAddInt32, 0, 0, 4);
  builder_.Emit(Opcode::kReturn, 0);
  End();
  EXPECT_EQ(Run(divmod, {17, 5}), State::kDone);
  EXPECT_EQ(Result(0), 3);
  EXPECT_EQ(Result(1), 2);
  EXPECT_EQ(ResultOf(caller, {17, 5}), 302);
}

// The sum of i * i for i < n.
TEST_F(InterpreterTest, LoopsRepeat) {
  const int squares = builder_.Declare(Signature("Squares", 1));
  builder_.Begin(squares);
  const CodeBuilder::Label again = builder_.NewLabel();
  const CodeBuilder::Label done = builder_.NewLabel();
  builder_.Emit(Opcode::kConstant, 1, Int(0));
  builder_.Emit(Opcode::kConstant, 2, Int(0));
  builder_.Bind(again);
  builder_.EmitJump(Opcode::kUnlessLessInt32, 1, 0, done);
  builder_.Emit(Opcode::kMulInt32, 3, 1, 1);
  builder_.Emit(Opcode::kAddInt32, 2, 2, 3);
  builder_.Emit(Opcode::kAddInt32K, 1, 1, Int(1));
  builder_.EmitJump(Opcode::kRepeat, 0, 0, again);
  builder_.Bind(done);
  builder_.Emit(Opcode::kReturn, 2);
  End();
  EXPECT_EQ(ResultOf(squares, {0}), 0);
  EXPECT_EQ(ResultOf(squares, {10}), 285);
}

TEST_F(InterpreterTest, CasesOutOfRangeAreTheLast) {
  const int pick = builder_.Declare(Signature("Pick", 1));
  builder_.Begin(pick);
  std::vector<CodeBuilder::Label> sides;
  builder_.Emit(Opcode::kCase, 0, 3);
  for (int i = 0; i < 3; ++i) {
    sides.push_back(builder_.NewLabel());
    builder_.EmitJump(Opcode::kJump, 0, 0, sides.back());
  }
  for (int i = 0; i < 3; ++i) {
    builder_.Bind(sides[i]);
    builder_.Emit(Opcode::kConstant, 0, Int(10 * i));
    builder_.Emit(Opcode::kReturn, 0);
  }
  End();
  EXPECT_EQ(ResultOf(pick, {1}), 10);
  EXPECT_EQ(ResultOf(pick, {-1}), 20);
  EXPECT_EQ(ResultOf(pick, {7}), 20);
}

TEST_F(InterpreterTest, ReadsElementsOfVectorsAndMatrices) {
  tensorflow::Tensor matrix(tensorflow::DT_INT32, tensorflow::TensorShape({2, 3}));
  for (int i = 0; i < 6; ++i) matrix.flat<int32_t>()(i) = 10 * i;
  tensorflow::Tensor vector(tensorflow::DT_INT32, tensorflow::TensorShape({6}));
  ASSERT_TRUE(vector.CopyFrom(matrix, tensorflow::TensorShape({6})));
  const Array of_matrix(matrix);
  const Array of_vector(vector);
  const int read = builder_.Declare(Signature("Read", 4));
  builder_.Begin(read);
  builder_.EmitElementAt(4, 0, {2, false, true, true}, 2, 3);
  builder_.Emit(Opcode::kElement4ByInt32, 5, 1, 3);
  builder_.Emit(Opcode::kAddInt32, 0, 4, 5);
  builder_.Emit(Opcode::kReturn, 0);
  End();
  Interpreter interpreter(code_, kMuch, nullptr, nullptr);
  const auto run = [&](int32_t row, int32_t column) {
    EXPECT_TRUE(interpreter.Start(read, {ToBits(&of_matrix), ToBits(&of_vector), ToBits(row), ToBits(column)}, 1));
    return Resume(&interpreter);
  };
  EXPECT_EQ(run(-1, 2), State::kDone);
  EXPECT_EQ(FromBits<int32_t>(interpreter.results()[0]), 50 + 20);
  EXPECT_EQ(run(0, 3), State::kUnfit);
  EXPECT_EQ(run(0, -1), State::kUnfit);  // of the vector
}

TEST_F(InterpreterTest, PausesWhenTheBudgetIsUsedUpAndGoesOn) {
  const int fib = WriteFib();
  Interpreter interpreter(code_, kMuch, nullptr, nullptr);
  ASSERT_TRUE(interpreter.Start(fib, {ToBits(15)}, 1));
  int pauses = 0;
  for (; Resume(&interpreter, 10) == State::kPaused; ++pauses) {
  }
  EXPECT_EQ(pauses, 1972 / 10);  // fib(15) makes 1972 calls
  EXPECT_EQ(FromBits<int32_t>(interpreter.results()[0]), 610);
  int64_t budget = 100;
  ASSERT_TRUE(interpreter.Start(fib, {ToBits(5)}, 1));
  EXPECT_EQ(interpreter.Resume(&budget), State::kDone);
  EXPECT_EQ(budget, 100 - 14);
}

TEST_F(InterpreterTest, StopsAtTheDepthLimit) {
  const int sum = WriteSum();
  EXPECT_EQ(Run(sum, {98}, 100), State::kDone);
  EXPECT_EQ(Run(sum, {99}, 100), State::kDone);
  EXPECT_EQ(Run(sum, {100}, 100), State::kTooDeep);
  EXPECT_EQ(interpreter_->depth(), 100);
  int frames = 0;
  interpreter_->ForEachFrame([&](int64_t depth, const CodeFunction& f) {
    EXPECT_EQ(f.name, "Sum");
    EXPECT_EQ(depth, 100 - frames++);
  });
  EXPECT_EQ(frames, 100);
}

TEST_F(InterpreterTest, StopsWhereMemoryEndsAndGivesItBack) {
  const int sum = WriteSum();
  const std::atomic<int64_t> limit{int64_t{1} << 20};
  std::atomic<int64_t> bytes{0};
  {
    Interpreter interpreter(code_, kMuch, &bytes, &limit);
    ASSERT_TRUE(interpreter.Start(sum, {ToBits(1'000'000)}, 1));
    EXPECT_EQ(Resume(&interpreter), State::kTooLarge);
    EXPECT_GT(bytes.load(), 0);
    EXPECT_LE(bytes.load(), int64_t{1} << 20);
    ASSERT_TRUE(interpreter.Start(sum, {ToBits(100)}, 1));
    EXPECT_EQ(Resume(&interpreter), State::kDone);
  }
  EXPECT_EQ(bytes.load(), 0);
}

TEST_F(InterpreterTest, LeavesSpecialCasesToTheKernel) {
  const int divide = builder_.Declare(Signature("Divide", 2));
  builder_.Begin(divide);
  KernelCase kernel_case;
  kernel_case.kernel = 7;
  kernel_case.result = 2;
  kernel_case.operands = {{KernelCase::Operand::Kind::kNumber, 0}, {KernelCase::Operand::Kind::kNumber, 1}};
  builder_.AddKernelCase(kernel_case);
  builder_.Emit(Opcode::kFloorDivInt32, 2, 0, 1);
  builder_.Emit(Opcode::kFloorModInt32, 3, 0, 1);
  builder_.Emit(Opcode::kAddInt32, 0, 2, 3);
  builder_.Emit(Opcode::kReturn, 0);
  End();
  EXPECT_EQ(ResultOf(divide, {7, 2}), 4);
  ASSERT_EQ(Run(divide, {7, 0}), State::kNeedsKernel);
  EXPECT_EQ(interpreter_->kernel_case().kernel, 7);
  EXPECT_EQ(interpreter_->KernelOperand(interpreter_->kernel_case().operands[0]).int32, 7);
  interpreter_->SupplyResult(ToBits(5));
  EXPECT_EQ(Resume(interpreter_.get()), State::kUnfit);  // of the modulus no kernel is known
}

TEST_F(InterpreterTest, AppliesFunctions) {
  const int power = builder_.Declare(Signature("Power", 2));
  const auto find = [](const std::string& op) {
    const tensorflow::DataType type = tensorflow::DT_INT32;
    return FindScalarOperator(op, {type, type}, {type}).on_numbers;
  };
  builder_.Begin(power);
  builder_.EmitApply(0, builder_.Operator("Pow", find("Pow")), 0, 1);
  builder_.Emit(Opcode::kReturn, 0);
  End();
  EXPECT_EQ(ResultOf(power, {3, 4}), 81);
  EXPECT_EQ(Run(power, {3, -1}), State::kUnfit);
}

TEST_F(InterpreterTest, PrintsAListing) {
  const int fib = WriteFib();
  EXPECT_EQ(Disassemble(code_, code_.functions[fib]),
            "Fib(int32) -> int32\n"
            "    0  UnlessLessInt32K         r0, 2 -> 2\n"
            "    1  Return                   r0\n"
            "    2  SubInt32K                r2 = r0, 1\n"
            "    3  Call                     r1 = Fib(r2)\n"
            "    4  SubInt32K                r3 = r0, 2\n"
            "    5  Call                     r0 = Fib(r3)\n"
            "    6  AddInt32                 r0 = r1, r0\n"
            "    7  Return                   r0\n");
}

// Instructions that do what several others do. A call that computes an argument is begun anew after a suspension.
TEST_F(InterpreterTest, FusedInstructionsMayBeSuspended) {
  const int fib = builder_.Declare(Signature("Fib", 1));
  builder_.Begin(fib);
  builder_.Emit(Opcode::kReturnUnlessGreaterEqualInt32K, 0, 0, Int(2));
  builder_.EmitCall(Opcode::kCallSubInt32K, 1, fib, 2, {2, 0, Int(1)});
  builder_.EmitCall(Opcode::kCallSubInt32K, 0, fib, 3, {3, 0, Int(2)});
  builder_.Emit(Opcode::kReturnAddInt32, 0, 1, 0);
  End();
  EXPECT_EQ(ResultOf(fib, {20}), 6765);
  Interpreter interpreter(code_, kMuch, nullptr, nullptr);
  ASSERT_TRUE(interpreter.Start(fib, {ToBits(15)}, 1));
  int pauses = 0;
  for (; Resume(&interpreter, 1) == State::kPaused; ++pauses) {
  }
  EXPECT_EQ(pauses, 1971);  // fib(15) makes 1972 calls, and waits before each but the first
  EXPECT_EQ(FromBits<int32_t>(interpreter.results()[0]), 610);
}

TEST_F(InterpreterTest, TwoMovesAreOneAfterTheOther) {
  const int moves = builder_.Declare(Signature("Moves", 2));
  builder_.Begin(moves);
  builder_.Emit(Opcode::kMove2, 2, 1, 2);  // 3 becomes what 2 is then
  builder_.Emit(Opcode::kReturnSubInt32, 0, 0, 3);
  End();
  EXPECT_EQ(ResultOf(moves, {7, 5}), 2);
}

TEST_F(InterpreterTest, ComparisonsWithNaNReturn) {
  const int nan = builder_.Declare(Signature("IsOrdered", 2));
  builder_.Begin(nan);
  builder_.Emit(Opcode::kReturnUnlessLessEqualFloat, 1, 0, 0);
  builder_.Emit(Opcode::kReturnMulFloat, 0, 0, 0);
  End();
  Interpreter interpreter(code_, kMuch, nullptr, nullptr);
  const auto run = [&](float x) {
    EXPECT_TRUE(interpreter.Start(nan, {ToBits(x), ToBits(-1.0f)}, 1));
    EXPECT_EQ(Resume(&interpreter), State::kDone);
    return FromBits<float>(interpreter.results()[0]);
  };
  EXPECT_EQ(run(3.0f), 9.0f);
  EXPECT_EQ(run(std::numeric_limits<float>::quiet_NaN()), -1.0f);
}

// Prints nanoseconds a call, for whoever changes the interpreter.
TEST_F(InterpreterTest, TakesNanosecondsACall) {
  const auto measure = [&](const char* name, int function, const std::vector<int32_t>& arguments, int64_t calls) {
    double best = std::numeric_limits<double>::max();
    for (int i = 0; i < 5; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      ASSERT_EQ(Run(function, arguments), State::kDone);
      const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
      best = std::min(best, time.count() / static_cast<double>(calls));
    }
    std::cout << name << ": " << best << " ns a call" << std::endl;
  };
  measure("fib(24)", WriteFib(), {24}, 150'049);
  measure("tak(18, 12, 6)", WriteTak(), {18, 12, 6}, 63'609);
  measure("sum(1000000)", WriteSum(), {1'000'000}, 1'000'001);
}

}  // namespace
}  // namespace tensorflow_recursion
