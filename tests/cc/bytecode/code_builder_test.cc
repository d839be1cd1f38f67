// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/code_builder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cc/bytecode/interpreter.h"
#include "cc/values/scalar_operators.h"
#include "tests/cc/bytecode/interpreting.h"

namespace tensorflow_recursion {
namespace {

class CodeBuilderTest : public ::testing::Test {
 protected:
  // Declares a function on numbers, and begins to write it.
  int Begin(const std::string& name, int num_arguments = 1, int num_results = 1) {
    CodeFunction function;
    function.name = name;
    function.arguments.assign(num_arguments, kIntRegister);
    function.results.assign(num_results, kIntRegister);
    const int number = builder_.Declare(function);
    builder_.Begin(number);
    return number;
  }

  // How large the frames of a function are that has just this instruction. What it reads and writes is in `a`, `b`,
  // `c`.
  uint32_t FrameWords(Opcode opcode, int a, int b = 0, int c = 0) {
    const int function = Begin("F");
    builder_.Emit(opcode, a, b, c);
    EXPECT_TRUE(builder_.End().ok());
    return code_.functions[function].frame_words;
  }

  void ExpectTooLarge() {
    const absl::Status status = builder_.End();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(status.message(), "'F' is too large to be compiled");
  }

  Code code_;
  CodeBuilder builder_{&code_};
};

// --- Functions ------------------------------------------------------------------------------------

TEST_F(CodeBuilderTest, FunctionsStandOneAfterTheOther) {
  const int first = Begin("First");
  builder_.Emit(Opcode::kMove, 1, 0);
  builder_.Emit(Opcode::kReturn, 1);
  ASSERT_TRUE(builder_.End().ok());
  const int second = Begin("Second");
  builder_.Emit(Opcode::kReturn, 0);
  ASSERT_TRUE(builder_.End().ok());
  EXPECT_EQ(code_.functions[first].end - code_.functions[first].begin, 2);
  EXPECT_EQ(code_.functions[second].begin, code_.functions[first].end);
  EXPECT_EQ(code_.functions[second].end, code_.instructions.size());
  EXPECT_EQ(code_.entries[first].begin, code_.functions[first].begin);
  EXPECT_EQ(code_.entries[first].frame_words, code_.functions[first].frame_words);
}

// A call compares for its callee, if that begins so.
TEST_F(CodeBuilderTest, AnEntryHasTheOperandsOfTheFirstInstruction) {
  const int function = Begin("F", /*num_arguments=*/3);
  builder_.Emit(Opcode::kReturnUnlessLessInt32, 2, 0, 1);
  builder_.Emit(Opcode::kReturn, 0);
  ASSERT_TRUE(builder_.End().ok());
  EXPECT_EQ(code_.entries[function].returned, 2);
  EXPECT_EQ(code_.entries[function].x, 0);
  EXPECT_EQ(code_.entries[function].y, 1);
}

// --- Frames ---------------------------------------------------------------------------------------

TEST_F(CodeBuilderTest, AFrameHasRoomForWhatEveryInstructionReadsAndWrites) {
  EXPECT_EQ(FrameWords(Opcode::kAddInt32, 9, 1, 2), 10);
  EXPECT_EQ(FrameWords(Opcode::kAddInt32, 1, 9, 2), 10);
  EXPECT_EQ(FrameWords(Opcode::kAddInt32, 1, 2, 9), 10);
  EXPECT_EQ(FrameWords(Opcode::kMove2, 9, 1, 2), 11) << "it writes the next one, too";
  EXPECT_EQ(FrameWords(Opcode::kReturnUnlessLessInt32, 9, 1, 2), 10);
  EXPECT_EQ(FrameWords(Opcode::kReturnAddInt32, 0, 1, 9), 10);
  EXPECT_EQ(FrameWords(Opcode::kUnless, 9), 10);
  EXPECT_EQ(FrameWords(Opcode::kKeepNumber, 1, 50, 9), 10);
  EXPECT_EQ(FrameWords(Opcode::kField, 1, 9, 50), 10);
}

TEST_F(CodeBuilderTest, NumbersOfConstantsTakeNoRoom) {
  EXPECT_EQ(FrameWords(Opcode::kConstant, 3, 50), 4);
  EXPECT_EQ(FrameWords(Opcode::kAddInt32K, 1, 3, 50), 4);
  EXPECT_EQ(FrameWords(Opcode::kReturnUnlessLessInt32K, 1, 3, 50), 4);
  EXPECT_EQ(FrameWords(Opcode::kReturnAddInt32K, 0, 3, 50), 4);
  EXPECT_EQ(FrameWords(Opcode::kUnlessLessInt32K, 3, 50), 4);
  EXPECT_EQ(FrameWords(Opcode::kCase, 3, 50), 4);
  EXPECT_EQ(FrameWords(Opcode::kMakeRecord, 3, 50), 4);
}

TEST_F(CodeBuilderTest, AFrameHasRoomForTheSecondWordsOfInstructions) {
  const auto words = [&](auto emit) {
    const int function = Begin("F");
    emit();
    EXPECT_TRUE(builder_.End().ok());
    return code_.functions[function].frame_words;
  };
  EXPECT_EQ(words([&] { builder_.EmitApply(1, 50, 2, 9, 3); }), 10);
  EXPECT_EQ(words([&] { builder_.EmitApply(1, 50, 2, 3, 9); }), 10);
  EXPECT_EQ(words([&] { builder_.EmitElementAt(1, 2, {2, false, true, false}, 3, 9); }), 10);
  EXPECT_EQ(words([&] { builder_.EmitCall(Opcode::kCallSubInt32K, 1, 50, 2, {9, 3, 50}); }), 10);
  EXPECT_EQ(words([&] { builder_.EmitCall(Opcode::kCallSubInt32K, 1, 50, 2, {3, 9, 50}); }), 10);
  EXPECT_EQ(words([&] { builder_.EmitCall(Opcode::kCallSubInt32K, 1, 50, 9, {3, 2, 50}); }), 10);
}

TEST_F(CodeBuilderTest, AFrameHasRoomForArgumentsAndResultsThatNoInstructionNames) {
  const int with_arguments = Begin("F", /*num_arguments=*/7);
  builder_.Emit(Opcode::kReturn, 0);
  ASSERT_TRUE(builder_.End().ok());
  EXPECT_EQ(code_.functions[with_arguments].frame_words, 7);
  const int with_results = Begin("G", /*num_arguments=*/1, /*num_results=*/5);
  builder_.Emit(Opcode::kReturnAll);
  ASSERT_TRUE(builder_.End().ok());
  EXPECT_EQ(code_.functions[with_results].frame_words, 5);
}

// --- Constants ------------------------------------------------------------------------------------

TEST_F(CodeBuilderTest, WhatIsTheSameHasOneNumber) {
  const uint16_t five = builder_.Constant(ToBits(5));
  const uint16_t six = builder_.Constant(ToBits(6));
  EXPECT_NE(five, six);
  EXPECT_EQ(builder_.Constant(ToBits(5)), five);
  EXPECT_EQ(code_.constants[six], ToBits(6));
  const NumberFunction none = nullptr;
  const uint16_t sine = builder_.Operator("Sin", none);
  EXPECT_EQ(builder_.Operator("Sin", none), sine);
  EXPECT_NE(builder_.Operator("Cos", none), sine);
  EXPECT_EQ(code_.operator_names[sine], "Sin");
}

// --- Notes ----------------------------------------------------------------------------------------

TEST_F(CodeBuilderTest, NotesAreAboutTheNextInstruction) {
  const int function = Begin("F");
  builder_.Emit(Opcode::kMove, 1, 0);
  KernelCase kernel_case;
  kernel_case.kernel = 3;
  builder_.AddKernelCase(kernel_case);
  builder_.Emit(Opcode::kFloorDivInt32, 1, 1, 0);
  builder_.AddCall("F/call", "G");
  builder_.Emit(Opcode::kCall, 1, function, 2);
  ASSERT_TRUE(builder_.End().ok());
  const uint32_t begin = code_.functions[function].begin;
  ASSERT_NE(code_.KernelCaseAt(begin + 1), nullptr);
  EXPECT_EQ(code_.KernelCaseAt(begin + 1)->kernel, 3);
  EXPECT_EQ(code_.KernelCaseAt(begin), nullptr);
  ASSERT_NE(code_.CallAt(begin + 2), nullptr);
  EXPECT_EQ(code_.CallAt(begin + 2)->callee, "G");
}

// --- Limits ---------------------------------------------------------------------------------------

TEST_F(CodeBuilderTest, TheLastRegisterFitsAndTheNextOneDoesNot) {
  Begin("F");
  builder_.Emit(Opcode::kReturn, 0xffff);
  EXPECT_TRUE(builder_.End().ok());
  Begin("F");
  builder_.Emit(Opcode::kReturn, 0x10000);
  ExpectTooLarge();
}

TEST_F(CodeBuilderTest, AJumpGoesOnlySoFarInEitherDirection) {
  constexpr int kFarthest = 0x7fff;
  for (const bool goes_back : {false, true}) {
    for (const int too_far : {0, 1}) {
      Begin("F");
      const CodeBuilder::Label label = builder_.NewLabel();
      const int between = kFarthest + too_far + (goes_back ? 1 : -1);
      if (goes_back) builder_.Bind(label);
      if (!goes_back) builder_.EmitJump(Opcode::kJump, 0, 0, label);
      for (int i = 0; i < between; ++i) builder_.Emit(Opcode::kMove, 0, 0);
      if (goes_back) builder_.EmitJump(Opcode::kRepeat, 0, 0, label);
      if (!goes_back) builder_.Bind(label);
      builder_.Emit(Opcode::kReturn, 0);
      if (too_far == 0) {
        EXPECT_TRUE(builder_.End().ok()) << goes_back;
      } else {
        ExpectTooLarge();
      }
    }
  }
}

TEST_F(CodeBuilderTest, OneFunctionThatIsTooLargeSpoilsNoOther) {
  Begin("F");
  builder_.Emit(Opcode::kReturn, 0x10000);
  ExpectTooLarge();
  const int next = Begin("G");
  const CodeBuilder::Label label = builder_.NewLabel();
  builder_.EmitJump(Opcode::kJump, 0, 0, label);
  builder_.Emit(Opcode::kConstant, 0, builder_.Constant(ToBits(1)));
  builder_.Bind(label);
  builder_.Emit(Opcode::kReturn, 0);
  ASSERT_TRUE(builder_.End().ok());
  Interpreter interpreter(code_, kMuch, nullptr, nullptr);
  ASSERT_TRUE(interpreter.Start(next, std::vector<uint64_t>{ToBits(7)}, 1));
  int64_t budget = kMuch;
  ASSERT_EQ(interpreter.Resume(&budget), Interpreter::State::kDone);
  EXPECT_EQ(FromBits<int32_t>(interpreter.results()[0]), 7);
}

}  // namespace
}  // namespace tensorflow_recursion
