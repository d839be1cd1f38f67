// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/operator_runner.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/cc/executor/worker_parts_fixture.h"
#include "tests/cc/values/numbers.h"

namespace tensorflow_recursion {
namespace {

class OperatorRunnerTest : public WorkerPartsTest {
 protected:
  // main(x, y) = (x - y) + 10
  void Run(bool trace) {
    StaticGraph graph;
    graph.Arg("x").Arg("y", 1).Const("ten", 10).Op("difference", "Sub", {"x", "y"});
    graph.Op("sum", "AddV2", {"difference", "ten"}).Retval("sum");
    SetProgram(graph, /*max_workers=*/1, trace);
    parts_->calls.OpenRoot(Numbers({7, 3}));
    WorkToTheEnd();
  }
};

TEST_F(OperatorRunnerTest, NumbersAreComputedWithoutKernels) {
  Run(/*trace=*/false);
  EXPECT_EQ(Retvals(), std::vector<int>{14});
  EXPECT_EQ(runner_.runs("difference") + runner_.runs("sum"), 0);
}

TEST_F(OperatorRunnerTest, ATraceShowsAKernelForEachOperator) {
  Run(/*trace=*/true);
  EXPECT_EQ(Retvals(), std::vector<int>{14});
  EXPECT_EQ(runner_.runs("difference"), 1);
  EXPECT_EQ(runner_.runs("sum"), 1);
}

TEST_F(OperatorRunnerTest, AKernelDecidesWhereArithmeticHasNoResult) {
  StaticGraph graph;
  graph.Arg("x").Arg("y", 1).Op("quotient", "FloorDiv", {"x", "y"}).Retval("quotient");
  SetProgram(graph);
  parts_->calls.OpenRoot(Numbers({7, 0}));
  WorkToTheEnd();
  EXPECT_EQ(runner_.runs("quotient"), 1);
  EXPECT_TRUE(absl::IsInvalidArgument(run_->status())) << run_->status();
}

}  // namespace
}  // namespace tensorflow_recursion
