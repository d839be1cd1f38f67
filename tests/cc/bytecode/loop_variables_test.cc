// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/loop_variables.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/cc/analysis/flow.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {
namespace {

// F(n) = the sum of Fib(i) for i < n.
StaticGraph SumOfFibs() {
  StaticGraph graph;
  graph.Function("F", {"n"});
  AddSumOfFibs(&graph, "F/", "F/n", {"^F/frame_start"}, 2).Result("F", "F/exit");
  AddFib(&graph, 3);
  return graph;
}

TEST(LoopVariablesTest, AVariableStartsSomewhereAndBecomesSomething) {
  const BuiltFlow built(SumOfFibs());
  ASSERT_TRUE(built.status.ok()) << built.status;
  ASSERT_EQ(built.flow.loops.size(), 1);
  std::map<std::string, LoopVariable> variables;
  for (const LoopVariable& variable : VariablesOf(built.flow, built.flow.loops[0])) {
    variables[built[variable.entry].node->name()] = variable;
  }
  ASSERT_EQ(variables.size(), 3);

  const LoopVariable& i = variables.at("F/i");
  EXPECT_TRUE(i.start.is_constant());
  ASSERT_TRUE(i.next.has_value());
  EXPECT_EQ(built[i.next->source.node].node->name(), "F/add_i");

  ASSERT_TRUE(variables.at("F/s").next.has_value());
  EXPECT_EQ(built[variables.at("F/s").next->source.node].node->name(), "F/add_s");

  const LoopVariable& n = variables.at("F/enter_n");
  EXPECT_EQ(n.start.source.node, built.Find("F/n", OpKind::kEntry));
  EXPECT_FALSE(n.next.has_value()) << "it is the same in every iteration";
}

TEST(LoopVariablesTest, ALoopOfSuchVariablesIsSimple) {
  const BuiltFlow built(SumOfFibs());
  ASSERT_TRUE(built.status.ok()) << built.status;
  EXPECT_TRUE(IsSimpleLoop(built.flow, built.flow.loops.at(0)));
}

TEST(LoopVariablesTest, ALoopThatReadsInWhichIterationItIsIsNotSimple) {
  StaticGraph graph = SumOfFibs();
  graph.Op("F/is_later", "Neg", {"F/i:1"});
  const BuiltFlow built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  EXPECT_FALSE(IsSimpleLoop(built.flow, built.flow.loops.at(0)));
}

}  // namespace
}  // namespace tensorflow_recursion
