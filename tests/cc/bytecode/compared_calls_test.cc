// Calls that compare for their callee: which become such, and that they do what the two instructions did.
// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/compared_calls.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "cc/bytecode/code_builder.h"
#include "cc/bytecode/interpreter.h"
#include "cc/values/scalar_operators.h"
#include "tests/cc/bytecode/interpreting.h"

namespace tensorflow_recursion {
namespace {

using State = Interpreter::State;
using tensorflow::DataType;

class ComparedCallsTest : public ::testing::Test {
 protected:
  static CodeFunction Signature(const std::string& name, int arguments, DataType dtype) {
    CodeFunction function;
    function.name = function.graph_name = name;
    for (int i = 0; i < arguments; ++i) function.arguments.push_back({dtype, false});
    function.results.push_back({dtype, false});
    return function;
  }

  void End() { ASSERT_TRUE(builder_.End().ok()); }
  std::string NameAt(uint32_t instruction) const { return InfoOf(code_.instructions[instruction].opcode).name; }

  // Fib, by instructions that return or call at once. The first call is its second instruction.
  int WriteFib() {
    const int fib = builder_.Declare(Signature("Fib", 1, tensorflow::DT_INT32));
    builder_.Begin(fib);
    builder_.Emit(Opcode::kReturnUnlessGreaterEqualInt32K, 0, 0, builder_.Constant(ToBits(2)));
    builder_.EmitCall(Opcode::kCallSubInt32K, 1, fib, 2, {2, 0, builder_.Constant(ToBits(1))});
    builder_.EmitCall(Opcode::kCallSubInt32K, 0, fib, 3, {3, 0, builder_.Constant(ToBits(2))});
    builder_.Emit(Opcode::kReturnAddInt32, 0, 1, 0);
    End();
    return fib;
  }

  // Calls `callee`, whose first instruction is `opcode`, with its own two arguments swapped, and adds 100 to the
  // result.
  template <typename T>
  int WriteCaller(Opcode opcode, Opcode add, DataType dtype, T second) {
    const bool is_constant = InfoOf(opcode).format == Format::kReturnUnlessRK;
    const int callee = builder_.Declare(Signature("Callee", 2, dtype));
    builder_.Begin(callee);
    builder_.Emit(opcode, 1, 0, is_constant ? builder_.Constant(ToBits(second)) : 1);
    builder_.Emit(Opcode::kReturn, 0);
    End();
    const int caller = builder_.Declare(Signature("Caller", 2, dtype));
    builder_.Begin(caller);
    builder_.Emit(Opcode::kMove2, 3, 1, 0);
    builder_.Emit(Opcode::kCall, 2, callee, 3);
    builder_.Emit(add, 2, 2, builder_.Constant(ToBits(T{100})));
    builder_.Emit(Opcode::kReturn, 2);
    End();
    CompareBeforeCalls(&code_);
    return caller;
  }

  template <typename T>
  T Run(int function, const std::vector<T>& arguments) {
    Interpreter interpreter(code_, kMuch, nullptr, nullptr);
    std::vector<uint64_t> bits;
    for (const T argument : arguments) bits.push_back(ToBits(argument));
    EXPECT_TRUE(interpreter.Start(function, bits, 1));
    int64_t budget = kMuch;
    EXPECT_EQ(interpreter.Resume(&budget), State::kDone);
    return FromBits<T>(interpreter.results()[0]);
  }

  Code code_;
  CodeBuilder builder_{&code_};
};

TEST_F(ComparedCallsTest, ACallOfAFunctionThatBeginsWithAReturnComparesFirst) {
  const int fib = WriteFib();
  EXPECT_EQ(Run<int32_t>(fib, {20}), 6765);
  CompareBeforeCalls(&code_);
  const uint32_t first_call = code_.functions[fib].begin + 1;
  EXPECT_EQ(NameAt(first_call), "CallSubInt32KIfGreaterEqualInt32K");
  EXPECT_TRUE(IsCall(code_.instructions[first_call].opcode));
  EXPECT_EQ(SizeOf(code_.instructions[first_call].opcode), 2);
  EXPECT_EQ(Run<int32_t>(fib, {20}), 6765);
}

TEST_F(ComparedCallsTest, CallsCountAsBeforeAndMayBeSuspended) {
  const int fib = WriteFib();
  CompareBeforeCalls(&code_);
  Interpreter interpreter(code_, kMuch, nullptr, nullptr);
  ASSERT_TRUE(interpreter.Start(fib, {ToBits(15)}, 1));
  int pauses = 0;
  for (int64_t budget = 1; interpreter.Resume(&budget) == State::kPaused; budget = 1) ++pauses;
  EXPECT_EQ(pauses, 1971);  // fib(15) makes 1972 calls, and waits before each but the first
  EXPECT_EQ(FromBits<int32_t>(interpreter.results()[0]), 610);
}

TEST_F(ComparedCallsTest, ACallThatReturnsAtOnceIsAsDeepAsOthers) {
  const int fib = WriteFib();
  CompareBeforeCalls(&code_);
  for (const int64_t max_depth : {10, 9}) {
    Interpreter interpreter(code_, max_depth, nullptr, nullptr);
    ASSERT_TRUE(interpreter.Start(fib, {ToBits(10)}, 1));  // the last, fib(1), is 10 deep
    int64_t budget = kMuch;
    EXPECT_EQ(interpreter.Resume(&budget), max_depth == 10 ? State::kDone : State::kTooDeep);
  }
}

TEST_F(ComparedCallsTest, OfNaNNothingHolds) {
  const int caller =
      WriteCaller<double>(Opcode::kReturnUnlessLessDouble, Opcode::kAddDoubleK, tensorflow::DT_DOUBLE, 0.0);
  EXPECT_EQ(NameAt(code_.functions[caller].begin + 1), "CallIfLessDouble");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Run<double>(caller, {2.0, 1.0}), 101.0);  // the callee gets (1, 2)
  EXPECT_EQ(Run<double>(caller, {1.0, 2.0}), 101.0);
  EXPECT_EQ(Run<double>(caller, {7.0, nan}), 107.0);
}

// Every comparison of every type, with a register and with a constant.
TEST_F(ComparedCallsTest, EachComparisonIsTheOneOfItsName) {
#define TFR_EXPECT(name, type, T)                                                                                 \
  for (const bool is_constant : {false, true}) {                                                                  \
    const Opcode opcode = is_constant ? Opcode::kReturnUnless##name##type##K : Opcode::kReturnUnless##name##type; \
    const int caller = WriteCaller<T>(opcode, Opcode::kAdd##type##K, tensorflow::DataTypeToEnum<T>::value, T{5}); \
    EXPECT_EQ(NameAt(code_.functions[caller].begin + 1),                                                          \
              std::string("CallIf" #name #type) + (is_constant ? "K" : ""));                                      \
    for (const T x : {T{4}, T{5}, T{6}}) {                                                                        \
      bool holds = false;                                                                                         \
      operators::name<T>::Run(x, T{5}, &holds);                                                                   \
      EXPECT_EQ(Run<T>(caller, {T{5}, x}), (holds ? x : T{5}) + T{100}) << #name #type;                           \
    }                                                                                                             \
  }
  TFR_COMPARISONS(TFR_EXPECT)
#undef TFR_EXPECT
}

}  // namespace
}  // namespace tensorflow_recursion
