// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/control_flow.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tests/cc/executor/worker_parts_fixture.h"
#include "tests/cc/values/numbers.h"

namespace tensorflow_recursion {
namespace {

class ControlFlowTest : public WorkerPartsTest {
 protected:
  std::vector<int> RunToTheEnd(std::vector<Value> arguments) {
    parts_->calls.OpenRoot(std::move(arguments));
    WorkToTheEnd();
    return Retvals();
  }
};

// main(x, y) = x < y ? t(x) : f(x)
StaticGraph Choice() {
  StaticGraph graph;
  graph.Arg("x").Arg("y", 1).Op("less", "Less", {"x", "y"}).Op("switch", "Switch", {"x", "less"});
  graph.Kernel("f", {"switch"}).Kernel("t", {"switch:1"}).Retval("f").Retval("t", 1);
  return graph;
}

TEST_F(ControlFlowTest, OnlyOneSideOfABranchLives) {
  SetProgram(Choice());
  EXPECT_EQ(RunToTheEnd(Numbers({1, 2})), (std::vector<int>{Outcome::kDead, 1}));
  SetProgram(Choice());
  EXPECT_EQ(RunToTheEnd(Numbers({2, 1})), (std::vector<int>{2, Outcome::kDead}));
}

TEST_F(ControlFlowTest, DataThatWaitsAtGatesGoesOnWhenTheBranchIsDecided) {
  StaticGraph graph;
  graph.Arg("x").Arg("p", 1, tensorflow::DT_BOOL).Kernel("a", {"x"}).Kernel("b", {"x"});
  graph.Op("sa", "Switch", {"a", "p"}).Op("sb", "Switch", {"b", "p"});
  graph.Kernel("both", {"sa:1", "sb:1"}).Retval("both");
  SetProgram(graph);
  EXPECT_EQ(RunToTheEnd({live_.Make(4), ScalarFromTensor(tensorflow::Tensor(true))}), std::vector<int>{4});
  EXPECT_EQ(live_.count(), 0);
}

TEST_F(ControlFlowTest, APredicateThatIsNoScalarIsAnError) {
  StaticGraph graph;
  graph.Arg("x").Arg("p", 1, tensorflow::DT_BOOL).Op("switch", "Switch", {"x", "p"});
  graph.Kernel("f", {"switch"}).Retval("f");
  SetProgram(graph);
  auto* predicate = new tensorflow::Tensor(tensorflow::DT_BOOL, tensorflow::TensorShape({2}));
  RunToTheEnd({live_.Make(4), Value::Own(predicate)});
  EXPECT_TRUE(absl::StrContains(run_->status().message(),
                                "must be a scalar bool, got bool of shape [2]\n\t [[{{node switch}}]]"))
      << run_->status();
  parts_.reset();
  EXPECT_EQ(live_.count(), 0);
}

TEST_F(ControlFlowTest, AMergeWithItsIndexTellsWhichInputCame) {
  StaticGraph graph = Choice();
  Merge(&graph, "merge", {"f", "t"}).Retval("merge:1", 2);
  SetProgram(graph);
  EXPECT_EQ(RunToTheEnd(Numbers({1, 2})).at(2), 1);
  SetProgram(graph);
  EXPECT_EQ(RunToTheEnd(Numbers({2, 1})).at(2), 0);
}

TEST_F(ControlFlowTest, AMergeIsDeadWhenAllItsInputsAre) {
  StaticGraph graph;
  graph.Arg("x").Arg("y", 1).Op("less", "Less", {"x", "y"}).Op("switch", "Switch", {"x", "less"});
  graph.Kernel("one", {"switch:1"}).Kernel("two", {"switch:1"});
  Merge(&graph, "inner", {"one", "two"});
  Merge(&graph, "outer", {"inner", "switch"}).Retval("outer");
  SetProgram(graph);
  EXPECT_EQ(RunToTheEnd(Numbers({2, 1})), std::vector<int>{2});
}

}  // namespace
}  // namespace tensorflow_recursion
