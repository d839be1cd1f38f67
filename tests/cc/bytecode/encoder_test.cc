// Steps written by hand, and the instructions that they become.
// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/encoder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/bytecode/disassembler.h"
#include "cc/bytecode/interpreter.h"
#include "cc/values/record.h"
#include "cc/values/scalar_operators.h"
#include "tensorflow/core/framework/types.h"
#include "tests/cc/bytecode/interpreting.h"
#include "tests/cc/bytecode/step_list.h"

namespace tensorflow_recursion {
namespace {

// Encodes the steps of F, which may call itself and G(x, y).
class EncoderTest : public ::testing::Test {
 protected:
  static constexpr int kF = 0;
  static constexpr int kG = 1;

  void EncodeSteps(size_t num_results = 1) {
    Declare("F", steps_.function()->arguments.size(), num_results);
    Declare("G", 2, 1);
    builder_.Begin(kF);
    Encode(*steps_.function(), &builder_);
    ASSERT_TRUE(builder_.End().ok());
  }

  void Declare(const std::string& name, size_t num_arguments, size_t num_results) {
    CodeFunction function;
    function.name = name;
    function.arguments.assign(num_arguments, kIntRegister);
    function.results.assign(num_results, kIntRegister);
    builder_.Declare(function);
  }

  // The instructions, without the line that says what F takes and returns.
  std::string Listing() {
    EncodeSteps();
    const std::string listing = Disassemble(code_, code_.functions[kF]);
    return listing.substr(listing.find('\n') + 1);
  }

  // `index` counts from the first instruction of F.
  const Instruction& At(uint32_t index) const { return code_.instructions[code_.functions[kF].begin + index]; }

  Step& Call(int function, VirtualId result, const std::vector<VirtualId>& window) {
    Step& step = steps_.Add(Opcode::kCall, {result}, window);
    step.target = function;
    return step;
  }
  // Computes the value of an argument right where the call finds it.
  VirtualId Argument(Opcode opcode, VirtualId operand, uint64_t constant) {
    const VirtualId argument = steps_.InWindow();
    steps_.Add(opcode, {argument}, {operand}).constant = constant;
    return argument;
  }
  VirtualId Sum(VirtualId x, VirtualId y) {
    const VirtualId sum = steps_.Value();
    steps_.Add(Opcode::kAddInt32, {sum}, {x, y});
    return sum;
  }

  Code code_;
  CodeBuilder builder_{&code_};
  StepList steps_;
};

TEST_F(EncoderTest, AStepBecomesAnInstructionOnTheRegistersOfItsValues) {
  const VirtualId x = steps_.Argument();
  const VirtualId three = steps_.Value();
  steps_.Add(Opcode::kConstant, {three}, {}).constant = ToBits(3);
  const VirtualId y = steps_.Compute(Opcode::kSubInt32K, x, ToBits(-7));
  steps_.Return(Sum(Sum(x, y), three));
  EXPECT_EQ(Listing(),
            "    0  Constant                 r1 = 3\n"
            "    1  SubInt32K                r2 = r0, -7\n"
            "    2  AddInt32                 r0 = r0, r2\n"
            "    3  AddInt32                 r0 = r0, r1\n"
            "    4  Return                   r0\n");
}

TEST_F(EncoderTest, AReturnMayCompareOrCompute) {
  const VirtualId x = steps_.Argument();
  const VirtualId y = steps_.Argument();
  steps_.Add(Opcode::kReturnUnlessLessInt32, {}, {y, x, y});
  steps_.Add(Opcode::kReturnUnlessLessInt32K, {}, {y, x}).constant = ToBits(2);
  steps_.Add(Opcode::kReturnSubInt32K, {}, {x}).constant = ToBits(1);
  steps_.Add(Opcode::kReturnSubInt32, {}, {y, x});
  EXPECT_EQ(Listing(),
            "    0  ReturnUnlessLessInt32    r1 unless r0, r1\n"
            "    1  ReturnUnlessLessInt32K   r1 unless r0, 2\n"
            "    2  ReturnSubInt32K          r0, 1\n"
            "    3  ReturnSubInt32           r1, r0\n");
}

// --- Jumps ----------------------------------------------------------------------------------------

// i = 0; while i < n: i += 1
TEST_F(EncoderTest, JumpsLeadForwardAndBackToTheirLabels) {
  const VirtualId n = steps_.Argument();
  const VirtualId i = steps_.Value();
  const LabelId begin = steps_.Label();
  const LabelId behind = steps_.Label();
  steps_.Add(Opcode::kConstant, {i}, {}).constant = ToBits(0);
  steps_.Bind(begin);
  steps_.Jump(Opcode::kUnlessLessInt32, {i, n}, behind);
  steps_.Add(Opcode::kMove, {i}, {steps_.Compute(Opcode::kAddInt32K, i, ToBits(1))});
  steps_.Jump(Opcode::kRepeat, {}, begin);
  steps_.Bind(behind);
  steps_.Return(i);
  EXPECT_EQ(Listing(),
            "    0  Constant                 r1 = 0\n"
            "    1  UnlessLessInt32          r1, r0 -> 5\n"
            "    2  AddInt32K                r2 = r1, 1\n"
            "    3  Move                     r1 = r2\n"
            "    4  Repeat                   -> 1\n"
            "    5  Return                   r1\n");
}

TEST_F(EncoderTest, EveryKindOfJumpReadsItsOperands) {
  const VirtualId x = steps_.Argument();
  const VirtualId y = steps_.Argument();
  const LabelId end = steps_.Label();
  steps_.Jump(Opcode::kUnlessLessInt32K, {y}, end);
  steps_.function()->steps.back().constant = ToBits(9);
  steps_.Jump(Opcode::kUnless, {y}, end);
  steps_.Jump(Opcode::kJump, {}, end);
  steps_.Bind(end);
  steps_.Return(x);
  EXPECT_EQ(Listing(),
            "    0  UnlessLessInt32K         r1, 9 -> 3\n"
            "    1  Unless                   r1 -> 3\n"
            "    2  Jump                     -> 3\n"
            "    3  Return                   r0\n");
}

TEST_F(EncoderTest, ACaseIsFollowedByAJumpToEachSide) {
  const VirtualId x = steps_.Argument();
  const std::vector<LabelId> sides = {steps_.Label(), steps_.Label()};
  steps_.Add(Opcode::kCase, {}, {x}).labels = sides;
  steps_.Bind(sides[1]);
  steps_.Return(x);
  steps_.Bind(sides[0]);
  steps_.Return(steps_.Compute(Opcode::kAddInt32K, x, ToBits(1)));
  EXPECT_EQ(Listing(),
            "    0  Case                     r0 of 2\n"
            "    1  Jump                     -> 4\n"
            "    2  Jump                     -> 3\n"
            "    3  Return                   r0\n"
            "    4  AddInt32K                r0 = r0, 1\n"
            "    5  Return                   r0\n");
}

// --- Calls ----------------------------------------------------------------------------------------

TEST_F(EncoderTest, ACallHasItsArgumentsInAWindowAndANoteForErrors) {
  const VirtualId n = steps_.Argument();
  const VirtualId window = steps_.InWindow();
  const VirtualId result = steps_.Value();
  steps_.Add(Opcode::kMove, {window}, {n});
  Step& call = Call(kF, result, {window});
  call.site = "F/call";
  call.callee = "f";
  steps_.Return(Sum(n, result));
  EXPECT_EQ(Listing(),
            "    0  Move                     r2 = r0\n"
            "    1  Call                     r1 = F(r2)\n"
            "    2  AddInt32                 r0 = r0, r1\n"
            "    3  Return                   r0\n");
  const CallNote* const note = code_.CallAt(code_.functions[kF].begin + 1);
  ASSERT_NE(note, nullptr);
  EXPECT_EQ(note->site, "F/call");
  EXPECT_EQ(note->callee, "f");
}

TEST_F(EncoderTest, SeveralResultsOfACallComeToItsWindow) {
  const VirtualId n = steps_.Argument();
  const VirtualId window = steps_.InWindow();
  const std::vector<VirtualId> results = {steps_.InWindow(), steps_.InWindow()};
  steps_.Add(Opcode::kMove, {window}, {n});
  steps_.Add(Opcode::kCall, results, {window}).target = kF;
  steps_.Return(Sum(results[0], results[1]));
  EncodeSteps();
  EXPECT_EQ(At(1).opcode, Opcode::kCall);
  EXPECT_EQ(At(1).a, At(1).c);
  EXPECT_EQ(At(2).b, At(1).c) << "the first result is where the first argument was";
  EXPECT_EQ(At(2).c, At(1).c + 1);
}

TEST_F(EncoderTest, ACallComputesAnArgumentItself) {
  const VirtualId n = steps_.Argument();
  const VirtualId result = steps_.Value();
  const VirtualId argument = Argument(Opcode::kSubInt32K, n, ToBits(1));
  Call(kF, result, {argument}).site = "F/call";
  steps_.Return(Sum(n, result));
  EXPECT_EQ(Listing(),
            "    0  CallSubInt32K            r1 = F(r2) after r2 = r0, 1\n"
            "    2  AddInt32                 r0 = r0, r1\n"
            "    3  Return                   r0\n");
  ASSERT_NE(code_.CallAt(code_.functions[kF].begin), nullptr);
  EXPECT_EQ(code_.CallAt(code_.functions[kF].begin)->site, "F/call");
}

TEST_F(EncoderTest, OtherArgumentsAreMovedBeforeACallThatComputesOne) {
  const VirtualId n = steps_.Argument();
  const VirtualId m = steps_.Argument();
  const VirtualId result = steps_.Value();
  const VirtualId first = Argument(Opcode::kAddInt32K, n, ToBits(1));
  const VirtualId second = steps_.InWindow();
  steps_.Add(Opcode::kMove, {second}, {m});
  Call(kG, result, {first, second});
  steps_.Return(Sum(Sum(n, result), m));
  EXPECT_EQ(Listing(),
            "    0  Move                     r4 = r1\n"
            "    1  CallAddInt32K            r2 = G(r3, r4) after r3 = r0, 1\n"
            "    3  AddInt32                 r0 = r0, r2\n"
            "    4  AddInt32                 r0 = r0, r1\n"
            "    5  Return                   r0\n");
}

TEST_F(EncoderTest, AnArgumentThatIsMovedToAnotherIsComputedBefore) {
  const VirtualId n = steps_.Argument();
  const VirtualId result = steps_.Value();
  const VirtualId first = Argument(Opcode::kSubInt32K, n, ToBits(1));
  const VirtualId second = steps_.InWindow();
  steps_.Add(Opcode::kMove, {second}, {first});
  Call(kG, result, {first, second});
  steps_.Return(Sum(n, result));
  EXPECT_EQ(Listing(),
            "    0  SubInt32K                r2 = r0, 1\n"
            "    1  Move                     r3 = r2\n"
            "    2  Call                     r1 = G(r2, r3)\n"
            "    3  AddInt32                 r0 = r0, r1\n"
            "    4  Return                   r0\n");
}

// The window begins below x, whose register becomes that of the second argument.
TEST_F(EncoderTest, AnArgumentIsComputedBeforeAMoveOverwritesWhatItReads) {
  const VirtualId a = steps_.Argument();
  steps_.Argument();
  steps_.Argument();
  const VirtualId x = steps_.Argument();
  const VirtualId result = steps_.Value();
  const VirtualId first = Argument(Opcode::kSubInt32K, x, ToBits(1));
  const VirtualId second = steps_.InWindow();
  steps_.Add(Opcode::kMove, {second}, {a});
  Call(kG, result, {first, second});
  steps_.Return(result);
  EXPECT_EQ(Listing(),
            "    0  SubInt32K                r2 = r3, 1\n"
            "    1  Move                     r3 = r0\n"
            "    2  Call                     r0 = G(r2, r3)\n"
            "    3  Return                   r0\n");
}

TEST_F(EncoderTest, OnlyAnArgumentOfTheCallIsComputedByIt) {
  const VirtualId n = steps_.Argument();
  const VirtualId result = steps_.Value();
  const VirtualId window = steps_.InWindow();
  steps_.Add(Opcode::kMove, {window}, {n});
  const VirtualId y = steps_.Compute(Opcode::kSubInt32K, n, ToBits(1));
  Call(kF, result, {window});
  steps_.Return(Sum(Sum(y, result), n));
  EXPECT_EQ(Listing(),
            "    0  Move                     r3 = r0\n"
            "    1  SubInt32K                r1 = r0, 1\n"
            "    2  Call                     r2 = F(r3)\n"
            "    3  AddInt32                 r1 = r1, r2\n"
            "    4  AddInt32                 r0 = r1, r0\n"
            "    5  Return                   r0\n");
}

TEST_F(EncoderTest, CallsComputeOnlySumsAndDifferences) {
  const VirtualId n = steps_.Argument();
  const VirtualId result = steps_.Value();
  Call(kF, result, {Argument(Opcode::kMulInt32K, n, ToBits(2))});
  steps_.Return(Sum(n, result));
  EXPECT_EQ(Listing(),
            "    0  MulInt32K                r2 = r0, 2\n"
            "    1  Call                     r1 = F(r2)\n"
            "    2  AddInt32                 r0 = r0, r1\n"
            "    3  Return                   r0\n");
}

// --- Moves ----------------------------------------------------------------------------------------

TEST_F(EncoderTest, MovesThatExchangeRegistersGoThroughASpareOne) {
  const VirtualId x = steps_.Argument();
  const VirtualId y = steps_.Argument();
  steps_.Add(Opcode::kMove, {x, y}, {y, x});
  steps_.Add(Opcode::kReturnSubInt32, {}, {x, y});
  EXPECT_EQ(Listing(),
            "    0  Move                     r2 = r0\n"
            "    1  Move2                    r0, r1 = r1, r2\n"
            "    2  ReturnSubInt32           r0, r1\n");
}

// The register that the exchange goes through must be none of the results.
TEST_F(EncoderTest, SeveralResultsComeToTheFirstRegistersAllAtOnce) {
  const VirtualId x = steps_.Argument();
  const VirtualId y = steps_.Argument();
  steps_.Add(Opcode::kReturnAll, {}, {y, x, y});
  EncodeSteps(/*num_results=*/3);
  Interpreter interpreter(code_, kMuch, nullptr, nullptr);
  ASSERT_TRUE(interpreter.Start(kF, std::vector<uint64_t>{ToBits(3), ToBits(4)}, 1));
  int64_t budget = kMuch;
  ASSERT_EQ(interpreter.Resume(&budget), Interpreter::State::kDone);
  std::vector<int32_t> results;
  for (const uint64_t bits : interpreter.results()) results.push_back(FromBits<int32_t>(bits));
  EXPECT_EQ(results, (std::vector<int32_t>{4, 3, 4}));
}

// --- Kernels, elements and records ----------------------------------------------------------------

TEST_F(EncoderTest, ASpecialCaseKnowsWhereTheKernelFindsItsInputs) {
  using Kind = KernelCase::Operand::Kind;
  const VirtualId x = steps_.Argument();
  const VirtualId y = steps_.Argument();
  const VirtualId quotient = steps_.Value();
  Step& step = steps_.Add(Opcode::kFloorDivInt32, {quotient}, {x, y});
  step.kernel = 7;
  step.kernel_operands = {{y, 0, /*is_array=*/true}, {kNone, ToBits(5), false}, {y, 0, false}};
  steps_.Return(Sum(x, quotient));
  EncodeSteps();
  const KernelCase* const found = code_.KernelCaseAt(code_.functions[kF].begin);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->kernel, 7);
  EXPECT_EQ(found->result, At(0).a);
  ASSERT_EQ(found->operands.size(), 3);
  EXPECT_EQ(found->operands[0].kind, Kind::kArray);
  EXPECT_EQ(found->operands[0].position, 1);
  EXPECT_EQ(found->operands[1].kind, Kind::kConstant);
  EXPECT_EQ(code_.constants[found->operands[1].position], ToBits(5));
  EXPECT_EQ(found->operands[2].kind, Kind::kNumber);
  EXPECT_EQ(found->operands[2].position, 1);
  EXPECT_EQ(code_.KernelCaseAt(code_.functions[kF].begin + 1), nullptr) << "a sum needs no kernel";
}

TEST_F(EncoderTest, AnApplyReadsAsManyOperandsAsItHas) {
  const VirtualId x = steps_.Argument();
  const VirtualId y = steps_.Argument();
  const VirtualId z = steps_.Argument();
  const VirtualId unused = steps_.Value();
  const auto apply = [&](const std::string& op, const std::vector<VirtualId>& operands) {
    steps_.Add(Opcode::kApply, {unused}, operands).target = builder_.Operator(op, nullptr);
  };
  apply("One", {z});
  apply("Two", {y, z});
  apply("Three", {x, y, z});
  steps_.Return(x);
  EXPECT_EQ(Listing(),
            "    0  Apply                    r3 = One r2, r0, r0\n"
            "    2  Apply                    r3 = Two r1, r2, r0\n"
            "    4  Apply                    r3 = Three r0, r1, r2\n"
            "    6  Return                   r0\n");
}

TEST_F(EncoderTest, AReadOfAVectorHasAnInstructionForEachSizeAndIndex) {
  const VirtualId array = steps_.Argument();
  const VirtualId index = steps_.Argument();
  std::vector<std::string> expected;
  for (const bool is_int64 : {false, true}) {
    for (uint8_t log_size = 0; log_size < 4; ++log_size) {
      Step& step = steps_.Add(Opcode::kElementAt, {steps_.Value()}, {array, index});
      step.target = ElementAccess{log_size, is_int64, false, false}.Encode();
      step.kernel = log_size;
      expected.push_back(absl::StrCat("Element", 1 << log_size, "By", is_int64 ? "Int64" : "Int32"));
    }
  }
  steps_.Return(index);
  EncodeSteps();
  for (uint32_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(InfoOf(At(i).opcode).name, expected[i]);
    EXPECT_EQ(At(i).b, 0);
    EXPECT_EQ(At(i).c, 1);
    ASSERT_NE(code_.KernelCaseAt(code_.functions[kF].begin + i), nullptr);
    EXPECT_EQ(code_.KernelCaseAt(code_.functions[kF].begin + i)->kernel, i % 4);
  }
}

TEST_F(EncoderTest, AReadThatCountsFromTheEndOrHasTwoIndicesSaysSo) {
  const VirtualId array = steps_.Argument();
  const VirtualId i = steps_.Argument();
  const VirtualId j = steps_.Argument();
  const ElementAccess from_end = {2, false, false, true};
  const ElementAccess of_matrix = {3, true, true, false};
  steps_.Add(Opcode::kElementAt, {steps_.Value()}, {array, j}).target = from_end.Encode();
  steps_.Add(Opcode::kElementAt, {steps_.Value()}, {array, j, i}).target = of_matrix.Encode();
  steps_.Return(i);
  EXPECT_EQ(Listing(),
            "    0  ElementAt                r3 = r0[r2]\n"
            "    2  ElementAt                r0 = r0[r2, r1]\n"
            "    4  Return                   r1\n");
  EXPECT_EQ(At(0).c, from_end.Encode());
  EXPECT_EQ(At(2).c, of_matrix.Encode());
}

TEST_F(EncoderTest, StepsOnRecordsNameTheirLayoutAndTheirValue) {
  const VirtualId record = steps_.Argument();
  const VirtualId number = steps_.Argument();
  const auto layout = [&](tensorflow::DataType dtype) {
    return builder_.Record({"recall", "F", {tensorflow::DT_INT32, dtype}});
  };
  const VirtualId opened = steps_.Value();
  const VirtualId field = steps_.Value();
  const VirtualId made = steps_.Value();
  steps_.Add(Opcode::kOpenRecord, {opened}, {record}).target = layout(tensorflow::DT_BOOL);
  steps_.Add(Opcode::kField, {field}, {opened}).target = 1;
  steps_.Add(Opcode::kMakeRecord, {made}, {}).target = layout(tensorflow::DT_VARIANT);
  steps_.Add(Opcode::kKeepNumber, {}, {made, number}).target = 0;
  steps_.Add(Opcode::kKeepRecord, {}, {made, record}).target = 1;
  steps_.Add(Opcode::kReturnAddInt32, {}, {made, field});
  EXPECT_EQ(Listing(),
            "    0  OpenRecord               r2 = r0 of {int32, bool}\n"
            "    1  Field                    r2 = r2[1]\n"
            "    2  MakeRecord               r3 = {int32, variant}\n"
            "    3  KeepNumber               r3[0] = r1\n"
            "    4  KeepRecord               r3[1] = r0\n"
            "    5  ReturnAddInt32           r3, r2\n");
}

}  // namespace
}  // namespace tensorflow_recursion
