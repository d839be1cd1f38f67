// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/piece_runner.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cc/executor/run_program_fixture.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;

// F(n, d): q = (n + 1) / d is positive, or not; then k(q + n), or l(q). k and l add nothing.
class PieceRunnerTest : public RunProgramTest {
 protected:
  PieceRunnerTest() {
    AddMain(&graph_, "F", 2);
    graph_.Function("F", {"n", "d"}).Const("F/one", 1, {"^F/frame_start"}).Op("F/a", "AddV2", {"F/n", "F/one"});
    graph_.Op("F/q", "FloorDiv", {"F/a", "F/d"}).Op("F/less", "Less", {"F/q", "F/one"});
    graph_.Op("F/sq", "Switch", {"F/q", "F/less"}).Op("F/sn", "Switch", {"F/n", "F/less"});
    graph_.Op("F/b", "AddV2", {"F/sq", "F/sn"}).Op("F/c", "AddV2", {"F/b", "F/sn"});
    graph_.Kernel("F/k", {"F/c"}).Kernel("F/l", {"F/sq:1"});
    Merge(&graph_, "F/merge", {"F/k", "F/l"}).Result("F", "F/merge");
  }

  int RunsOfMembers() const {
    int runs = 0;
    for (const char* name : {"F/a", "F/q", "F/less", "F/b", "F/c"}) runs += runner_.runs(name);
    return runs;
  }

  // Replaces a number by a vector of it.
  static Value Vector(int number) {
    auto* const tensor = NewTensor(Tensor(tensorflow::DT_INT32, {1}));
    tensor->flat<int32_t>()(0) = number;
    return Value::Own(tensor);
  }

  StaticGraph graph_;
};

TEST_F(PieceRunnerTest, APieceComputesWithoutKernels) {
  built_ = BuildCompiled(graph_);
  EXPECT_EQ(built_->pieces.size(), 2);
  EXPECT_EQ(RunWith(Numbers({13, 2})).Numbers(), std::vector<int>{33});
  EXPECT_EQ(RunWith(Numbers({1, 5})).Numbers(), std::vector<int>{0});
  EXPECT_EQ(RunsOfMembers(), 0);
}

TEST_F(PieceRunnerTest, ResultsAreTheSameInEveryOrder) {
  built_ = BuildCompiled(graph_);
  ExpectInEveryOrder({13, 2}, {33});
}

TEST_F(PieceRunnerTest, ATraceShowsTheKernelOfEachMember) {
  built_ = BuildCompiled(graph_);
  RunEnvironment traced = Environment();
  traced.trace = true;
  EXPECT_EQ(RunToEnd(traced, Numbers({13, 2})).Numbers(), std::vector<int>{33});
  EXPECT_EQ(RunsOfMembers(), 5);
}

TEST_F(PieceRunnerTest, AnErrorIsThatOfTheMember) {
  built_ = BuildCompiled(graph_);
  ExpectError(RunWith(Numbers({13, 0})), absl::StatusCode::kInvalidArgument, {"division by zero in F/q", "in call F"});
  EXPECT_EQ(RunsOfMembers(), 1);
}

TEST_F(PieceRunnerTest, AKernelMayHaveAResultWhereCodeHasNone) {
  runner_.On("F/q", [](KernelCall* call) {
    call->outputs[0] = Numbers({7})[0];
    return absl::OkStatus();
  });
  built_ = BuildCompiled(graph_);
  EXPECT_EQ(RunWith(Numbers({13, 0})).Numbers(), std::vector<int>{33});
  EXPECT_FALSE(built_->pieces.at(0).is_unfit);
}

TEST_F(PieceRunnerTest, MembersRunOneByOneWhereANumberIsATensor) {
  const auto first = [](const Value& value) {
    return value.is_scalar() ? value.int32 : value.tensor_or_null()->flat<int32_t>()(0);
  };
  const auto add = [first](KernelCall* call) {
    call->outputs[0] = Vector(first(call->inputs[0]) + first(call->inputs[1]));
    return absl::OkStatus();
  };
  runner_.On("F/a", add).On("F/b", add).On("F/c", add);
  runner_.On("F/q", [first](KernelCall* call) {
    call->outputs[0] = Numbers({first(call->inputs[0]) / first(call->inputs[1])})[0];
    return absl::OkStatus();
  });
  built_ = BuildCompiled(graph_);
  std::vector<Value> arguments = {Vector(13), Numbers({2})[0]};
  const Outcome outcome = RunWith(std::move(arguments));
  EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  EXPECT_TRUE(built_->pieces.at(0).is_unfit);
  EXPECT_EQ(RunWith(Numbers({13, 2})).Numbers(), std::vector<int>{33});  // from now on one by one
  EXPECT_EQ(live_.count(), 0);
}

// F(n, x) = n + 1 + x[n]: a tensor and a number go into the piece.
TEST_F(PieceRunnerTest, ElementsAreReadOfTensors) {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"n", "x"}).Const("F/zero", 0, {"^F/frame_start"}).Const("F/one", 1, {"^F/frame_start"});
  graph.Op("F/a", "AddV2", {"F/n", "F/one"});
  graph.Node("F/read", "GatherV2", {"F/x", "F/a", "F/zero"},
             {{"Tparams", kInt}, {"Tindices", kInt}, {"Taxis", kInt}, {"batch_dims", 0}});
  graph.Op("F/sum", "AddV2", {"F/read", "F/a"}).Op("F/less", "Less", {"F/sum", "F/zero"});
  graph.Op("F/switch", "Switch", {"F/sum", "F/less"}).Kernel("F/k", {"F/switch"}).Kernel("F/l", {"F/switch:1"});
  Merge(&graph, "F/merge", {"F/k", "F/l"}).Result("F", "F/merge");
  built_ = BuildCompiled(graph);
  ASSERT_EQ(built_->pieces.size(), 1);
  const auto run = [this](int n) {
    auto* const tensor = NewTensor(Tensor(tensorflow::DT_INT32, {3}));
    for (int i = 0; i < 3; ++i) tensor->flat<int32_t>()(i) = 10 * i;
    return RunWith({Numbers({n})[0], Value::Own(tensor)});
  };
  EXPECT_EQ(run(0).Numbers(), std::vector<int>{11});
  EXPECT_EQ(run(1).Numbers(), std::vector<int>{22});
  ExpectError(run(2), absl::StatusCode::kInvalidArgument, {"F/read", "in call F"});
  EXPECT_EQ(live_.count(), 0);
}

}  // namespace
}  // namespace tensorflow_recursion
