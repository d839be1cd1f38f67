// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/conditions.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/cc/analysis/flow.h"

namespace tensorflow_recursion {
namespace {

// A flow graph and the conditions in it.
class FoundConditions {
 public:
  explicit FoundConditions(const StaticGraph& graph) : built(graph), conditions(built.flow) {
    EXPECT_TRUE(built.status.ok()) << built.status;
    const absl::Status status = conditions.Find();
    EXPECT_TRUE(status.ok()) << status;
  }

  // Under which `node`, whose flow node is of this kind, yields its first output.
  Condition Of(const std::string& node, OpKind kind = OpKind::kKernel) const {
    Input input;
    input.source = {built.Find(node, kind), 0};
    return conditions.Of(input);
  }

  const BuiltFlow built;
  Conditions conditions;
};

TEST(ConditionsTest, SidesOfABranchDifferAndTheirMergeLivesAsWhatGoesIn) {
  StaticGraph graph;
  graph.Arg("p", 0, tensorflow::DT_BOOL).Arg("x", 1);
  AddConditional(&graph, "p", "x");
  graph.Retval("y");
  const FoundConditions found(graph);
  EXPECT_FALSE(found.Of("f").is_always());
  EXPECT_FALSE(found.Of("t").is_always());
  EXPECT_NE(found.Of("f"), found.Of("t"));
  EXPECT_TRUE(found.Of("y", OpKind::kMerge).is_always());
}

TEST(ConditionsTest, ResultsLiveAsTheCallUnlessTheBodySaysOtherwise) {
  StaticGraph graph;
  AddMain(&graph, "F", 2, 2);
  graph.Function("F", {"p", "x"}, 1000);
  graph.Op("F/switch", "Switch", {"F/x", "F/less"})
      .Const("F/two", 2, {"^F/frame_start"})
      .Op("F/less", "Less", {"F/p", "F/two"});
  graph.Result("F", "F/x").Result("F", "F/switch", 1);
  graph.Kernel("first", {"main/return_0"}).Kernel("second", {"main/return_1"});
  const FoundConditions found(graph);
  EXPECT_TRUE(found.Of("first").is_always());
  EXPECT_FALSE(found.Of("second").is_always());
}

TEST(ConditionsTest, AnArgumentThatMayBeDeadInALiveFrameIsAnEventOfItsOwn) {
  StaticGraph graph;
  graph.Arg("p", 0, tensorflow::DT_BOOL).Arg("x", 1).Op("switch", "Switch", {"x", "p"});
  graph.Call("main", "F", 1, {"x", "switch"}).Retval("main/return_0");
  graph.Function("F", {"a", "b"}).Kernel("F/k", {"F/a"}).Kernel("F/l", {"F/b"}).Result("F", "F/k");
  const FoundConditions found(graph);
  EXPECT_TRUE(found.Of("F/k").is_always());
  EXPECT_FALSE(found.Of("F/l").is_always());
}

TEST(ConditionsTest, AnOrdinaryLoopIsNotPartial) {
  StaticGraph graph;
  graph.Arg("n");
  AddFib(&graph, 2);
  AddSumOfFibs(&graph, "", "n", {}, 1).Retval("exit");
  const FoundConditions found(graph);
  ASSERT_EQ(found.built.flow.loops.size(), 1);
  EXPECT_FALSE(found.conditions.IsPartial(found.built.flow.loops[0].region));
}

TEST(ConditionsTest, ALoopThatAVariableMayNotEnterIsPartial) {
  StaticGraph graph;
  graph.Arg("p", 0, tensorflow::DT_BOOL).Arg("n", 1).Op("switch", "Switch", {"n", "p"});
  AddFib(&graph, 2);
  AddSumOfFibs(&graph, "", "n", {}, 1).Enter("enter_late", "switch", "loop");
  Merge(&graph, "late", {"enter_late", "next_late"});
  graph.Op("switch_late", "Switch", {"late", "cond"}).Op("next_late", "NextIteration", {"switch_late:1"});
  graph.Op("exit_late", "Exit", {"switch_late"}).Retval("exit").Retval("exit_late", 1);
  const FoundConditions found(graph);
  ASSERT_EQ(found.built.flow.loops.size(), 1);
  EXPECT_TRUE(found.conditions.IsPartial(found.built.flow.loops[0].region));
}

}  // namespace
}  // namespace tensorflow_recursion
