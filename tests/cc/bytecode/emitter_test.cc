// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/emitter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cc/analysis/static_graphs.h"
#include "tests/cc/bytecode/emitting.h"
#include "tests/cc/bytecode/step_list.h"

namespace tensorflow_recursion {
namespace {

class EmitterTest : public EmittingTest {
 protected:
  // Emits F. Its arguments are the first values.
  bool Emit() {
    MakeContext();
    return Emitter(context_.get(), F(), &steps_).Run();
  }
  std::string EmittedText() {
    EXPECT_TRUE(Emit());
    return TextOf(steps_);
  }

  StaticGraph& Const(const std::string& name, int value) { return graph_.Const(name, value, {"^F/frame_start"}); }

  // Begins a loop that counts from 0 on as long as the number is less than `n`. What stands in an iteration reads
  // `<prefix>body`, and EndLoop() says what the number becomes.
  void BeginLoop(const std::string& prefix, const std::string& n, const std::string& start) {
    const auto in = [&](const char* node) { return absl::StrCat(prefix, node); };
    graph_.Const(in("zero"), 0, {"^" + start}).Enter(in("enter"), in("zero"), in("loop"));
    graph_.Enter(in("enter_n"), n, in("loop"), /*is_constant=*/true);
    Merge(&graph_, in("i"), {in("enter"), in("next")}).Op(in("less"), "Less", {in("i"), in("enter_n")});
    graph_.Node(in("cond"), "LoopCond", {in("less")}).Op(in("switch"), "Switch", {in("i"), in("cond")});
    graph_.Op(in("body"), "Identity", {in("switch:1")}).Const(in("one"), 1, {"^" + in("body")});
  }
  void EndLoop(const std::string& prefix, const std::string& next) {
    graph_.Op(prefix + "next", "NextIteration", {next}).Op(prefix + "exit", "Exit", {prefix + "switch"});
  }

  // F(x) has so many conditionals, each on the false side of the one around it.
  void NestConditionals(int depth) {
    graph_ = StaticGraph();
    graph_.Function("F", {"x"});
    std::string value = "F/x";
    for (int i = 0; i < depth; ++i) {
      const auto in = [&](const char* node) { return absl::StrCat("F/", node, i); };
      Const(in("limit"), i).Op(in("less"), "Less", {value, in("limit")}).Op(in("s"), "Switch", {value, in("less")});
      graph_.Op(in("f"), "Neg", {in("s")}).Op(in("t"), "Abs", {in("s") + ":1"});
      value = in("f");
    }
    for (int i = depth; i-- > 0;) {
      Merge(&graph_, absl::StrCat("F/m", i), {value, absl::StrCat("F/t", i)});
      value = absl::StrCat("F/m", i);
    }
    graph_.Result("F", value);
    steps_ = FunctionSteps();
  }

  // The loop around each step with this opcode.
  std::vector<int> LoopsAround(Opcode opcode) const {
    std::vector<int> loops;
    for (const Step& step : steps_.steps) {
      if (step.is(opcode)) loops.push_back(step.loop);
    }
    return loops;
  }
};

// --- Arguments and results ------------------------------------------------------------------------

TEST_F(EmitterTest, ArgumentsAndResultsAreInTheirOrder) {
  graph_.Function("F", {"x", "y"}).Result("F", "F/x", 1).Result("F", "F/y", 0);
  EXPECT_EQ(EmittedText(), "ReturnAll v1, v0\n");
  EXPECT_EQ(steps_.arguments.size(), 2);
}

TEST_F(EmitterTest, AnArgumentThatNobodyReadsHasItsPlace) {
  graph_.Function("F", {}).Entry("F", "y", 1).Result("F", "F/y");
  EXPECT_EQ(EmittedText(), "Return v1\n");
  EXPECT_EQ(steps_.arguments.size(), 2);
}

TEST_F(EmitterTest, AResultThatNobodyReadsIsAnyNumber) {
  graph_.Function("F", {"x"}).Result("F", "F/x", 1);
  EXPECT_EQ(EmittedText(),
            "v1 = Constant 0\n"
            "ReturnAll v1, v0\n");
}

TEST_F(EmitterTest, AnArgumentIsComputedRightBeforeItsCall) {
  graph_.Function("F", {"x"});
  Const("F/one", 1);
  Const("F/two", 2).Op("F/x1", "Sub", {"F/x", "F/one"}).Op("F/x2", "Sub", {"F/x", "F/two"});
  graph_.Call("F/a", "F", 1, {"F/x1"}).Call("F/b", "F", 2, {"F/x2"});
  graph_.Op("F/sum", "AddV2", {"F/a/return_0", "F/b/return_0"}).Result("F", "F/sum");
  EXPECT_EQ(EmittedText(),
            "v1 = SubInt32K v0, 1\n"
            "v2 = Move v1\n"
            "v3 = Call v2\n"
            "v4 = SubInt32K v0, 2\n"
            "v5 = Move v4\n"
            "v6 = Call v5\n"
            "v7 = AddInt32 v3, v6\n"
            "Return v7\n");
}

TEST_F(EmitterTest, AFunctionThatReadsWhatNoStepMakesIsNotEmitted) {
  graph_.Function("F", {"x"}).Entry("F", "p", 1, tensorflow::DT_BOOL).Op("F/s", "Switch", {"F/x", "F/p"});
  Merge(&graph_, "F/m", {"F/s", "F/s:1"}).Op("F/which", "Neg", {"F/m:1"}).Result("F", "F/which");
  EXPECT_FALSE(Emit());
}

// --- Conditionals ---------------------------------------------------------------------------------

TEST_F(EmitterTest, AConditionalJumpsOverItsTrueSideToItsFalseSide) {
  graph_.Function("F", {"x"});
  Const("F/one", 1);
  Const("F/two", 2).Op("F/less", "Less", {"F/x", "F/two"}).Op("F/s", "Switch", {"F/x", "F/less"});
  graph_.Op("F/minus", "Sub", {"F/s", "F/one"});
  Merge(&graph_, "F/m", {"F/minus", "F/s:1"}).Result("F", "F/m");
  EXPECT_EQ(EmittedText(),
            "v1 = LessInt32K v0, 2\n"
            "Unless v1 -> L1\n"
            "L2:\n"
            "v2 = Move v0\n"
            "Jump -> L0\n"
            "L1:\n"
            "v3 = SubInt32K v0, 1\n"
            "v2 = Move v3\n"
            "Jump -> L0\n"
            "L0:\n"
            "Return v2\n");
}

TEST_F(EmitterTest, ACaseJumpsToTheSideOfItsIndex) {
  graph_.Function("F", {"x", "i"});
  graph_.Node("F/s", "_SwitchN", {"F/x", "F/i"}, {{"T", kInt}, {"num_outs", 3}});
  for (const int side : {0, 1}) {
    const std::string constant = absl::StrCat("F/c", side);
    Const(constant, 10 + side).Op(absl::StrCat("F/side", side), "AddV2", {absl::StrCat("F/s:", side), constant});
  }
  Merge(&graph_, "F/m", {"F/side0", "F/side1", "F/s:2"}).Result("F", "F/m");
  EXPECT_EQ(EmittedText(),
            "Case v1 -> L1 -> L2 -> L3\n"
            "L1:\n"
            "v3 = AddInt32K v0, 10\n"
            "v2 = Move v3\n"
            "Jump -> L0\n"
            "L2:\n"
            "v4 = AddInt32K v0, 11\n"
            "v2 = Move v4\n"
            "Jump -> L0\n"
            "L3:\n"
            "v2 = Move v0\n"
            "Jump -> L0\n"
            "L0:\n"
            "Return v2\n");
}

TEST_F(EmitterTest, AMergeMayTakeAConstant) {
  graph_.Function("F", {"x"}).Entry("F", "p", 1, tensorflow::DT_BOOL).Op("F/s", "Switch", {"F/x", "F/p"});
  graph_.Op("F/pivot", "Identity", {"F/s:1"}).Const("F/seven", 7, {"^F/pivot"});
  Merge(&graph_, "F/m", {"F/s", "F/seven"}).Result("F", "F/m");
  EXPECT_EQ(EmittedText(),
            "Unless v1 -> L1\n"
            "L2:\n"
            "v2 = Constant 7\n"
            "Jump -> L0\n"
            "L1:\n"
            "v2 = Move v0\n"
            "Jump -> L0\n"
            "L0:\n"
            "Return v2\n");
}

TEST_F(EmitterTest, ConditionalsMayNestButNotWithoutEnd) {
  NestConditionals(50);
  EXPECT_TRUE(Emit());
  NestConditionals(200);
  EXPECT_FALSE(Emit()) << "each takes some of the C++ stack";
}

// --- Loops ----------------------------------------------------------------------------------------

TEST_F(EmitterTest, ALoopsConditionRepeatsItOnOneSideAndGoesOnBehindIt) {
  graph_.Function("F", {"n"});
  BeginLoop("F/", "F/n", "F/frame_start");
  graph_.Op("F/more", "AddV2", {"F/body", "F/one"});
  EndLoop("F/", "F/more");
  graph_.Op("F/end", "Neg", {"F/exit"}).Result("F", "F/end");
  EXPECT_EQ(EmittedText(),
            "v1 = Constant 0\n"
            "L0:\n"
            "v2 = LessInt32 v1, v0\n"
            "Unless v2 -> L1\n"
            "v3 = AddInt32K v1, 1\n"
            "v1 = Move v3\n"
            "Repeat -> L0\n"
            "L1:\n"
            "v4 = Apply v1\n"
            "Return v4\n");
}

TEST_F(EmitterTest, StepsKnowTheInnermostLoopAroundThem) {
  graph_.Function("F", {"n"});
  BeginLoop("F/out_", "F/n", "F/frame_start");
  BeginLoop("F/in_", "F/out_body", "F/out_body");
  graph_.Op("F/in_more", "AddV2", {"F/in_body", "F/in_one"});
  EndLoop("F/in_", "F/in_more");
  graph_.Op("F/out_more", "Sub", {"F/in_exit", "F/out_body"});
  EndLoop("F/out_", "F/out_more");
  graph_.Op("F/end", "Neg", {"F/out_exit"}).Result("F", "F/end");
  ASSERT_TRUE(Emit());
  EXPECT_EQ(LoopsAround(Opcode::kRepeat), (std::vector<int>{2, 1}));
  EXPECT_EQ(LoopsAround(Opcode::kAddInt32K), std::vector<int>{2});
  EXPECT_EQ(LoopsAround(Opcode::kSubInt32), std::vector<int>{1});
  EXPECT_EQ(LoopsAround(Opcode::kApply), std::vector<int>{0});
}

// --- Order ----------------------------------------------------------------------------------------

// One side ends in the jump back and the other goes on behind the loop, so they never meet.
TEST_F(EmitterTest, AMergeOfBothSidesOfALoopsConditionIsNotEmitted) {
  graph_.Function("F", {"n"});
  BeginLoop("F/", "F/n", "F/frame_start");
  graph_.Op("F/more", "AddV2", {"F/body", "F/one"});
  EndLoop("F/", "F/more");
  Merge(&graph_, "F/either", {"F/switch", "F/body"}).Op("F/read", "Neg", {"F/either"});
  graph_.Result("F", "F/exit");
  EXPECT_FALSE(Emit());
}

}  // namespace
}  // namespace tensorflow_recursion
