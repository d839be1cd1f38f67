// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/late_values.h"

#include <gtest/gtest.h>

#include "tests/cc/analysis/flow.h"

namespace tensorflow_recursion {
namespace {

TEST(LateValuesTest, ComeBehindStatefulKernels) {
  StaticGraph graph;
  graph.Arg("x").Kernel("slow", {"x"}, 1, /*is_stateful=*/true).Kernel("behind", {"slow"}).Kernel("beside", {"x"});
  graph.Retval("behind").Retval("beside", 1);
  const BuiltFlow built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  const std::vector<NodeId> order = built.Order();
  const LateValues late = FindValuesAfterStatefulKernels(built.flow, order);
  EXPECT_TRUE(late.IsLate(built.Kernel("slow")));
  EXPECT_TRUE(late.IsLate(built.Kernel("behind")));
  EXPECT_FALSE(late.IsLate(built.Kernel("beside")));
}

TEST(LateValuesTest, ComeBehindCallsOfFunctionsThatWait) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"a"}).Call("F/g", "G", 2, {"F/a"}).Kernel("F/k", {"F/g/return_0"}).Result("F", "F/k");
  graph.Function("G", {"a"}).Kernel("G/slow", {"G/a"}, 1, /*is_stateful=*/true).Result("G", "G/slow");
  const BuiltFlow built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  const std::vector<NodeId> order = built.Order();
  const LateValues late = FindValuesAfterStatefulKernels(built.flow, order);
  EXPECT_TRUE(late.IsLate(built.Kernel("F/k")));
  for (const FlowCallSite& site : built.flow.call_sites) EXPECT_TRUE(late.IsLate(site.node)) << site.name;
}

// F(a, b), of which only b comes late; F passes it to G.
StaticGraph LateSecondArgument() {
  StaticGraph graph;
  graph.Arg("x").Kernel("slow", {"x"}, 1, /*is_stateful=*/true).Call("main", "F", 1, {"x", "slow"});
  graph.Retval("main/return_0");
  graph.Function("F", {"a", "b"}).Call("F/g", "G", 2, {"F/a", "F/b"}).Kernel("F/k", {"F/b"});
  graph.Result("F", "F/g/return_0").Result("F", "F/k", 1);
  graph.Function("G", {"a", "b"}).Kernel("G/k", {"G/a", "G/b"}).Result("G", "G/k");
  return graph;
}

TEST(LateValuesTest, AreThereWhenAFrameOpensUnlessArgumentsAreFollowed) {
  const BuiltFlow built(LateSecondArgument());
  ASSERT_TRUE(built.status.ok()) << built.status;
  const std::vector<NodeId> order = built.Order();
  EXPECT_FALSE(FindValuesAfterStatefulKernels(built.flow, order).IsLate(built.Kernel("F/k")));
  EXPECT_TRUE(FindValuesAfterSideEffects(built.flow, order).IsLate(built.Kernel("F/k")));
}

TEST(LateValuesTest, ArePassedOnAsArguments) {
  const BuiltFlow built(LateSecondArgument());
  const std::vector<NodeId> order = built.Order();
  const LateValues late = FindValuesAfterSideEffects(built.flow, order);
  for (const char* function : {"F", "G"}) {
    EXPECT_FALSE(late.IsLateArgument(function, 0)) << function;
    EXPECT_TRUE(late.IsLateArgument(function, 1)) << function;
  }
}

}  // namespace
}  // namespace tensorflow_recursion
