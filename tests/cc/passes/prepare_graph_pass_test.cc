// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/prepare_graph_pass.h"

#include <gtest/gtest.h>

#include "tests/cc/base/graphs.h"
#include "tests/cc/passes/switched_on.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::ConfigProto;

ConfigProto Faulty() {
  ConfigProto config = SwitchedOn();
  auto* entry = config.mutable_graph_options()->mutable_rewrite_options()->mutable_custom_optimizers(0);
  (*entry->mutable_parameter_map())["max_depth"].set_i(0);
  return config;
}

TEST(PrepareGraphTest, PadsGraphsThatGrapplerWouldSkip) {
  const auto graph = MakeGraph(OneCall());
  ASSERT_TRUE(PrepareGraph(SwitchedOn(), graph.get()).ok());
  EXPECT_EQ(graph->num_op_nodes(), 4);
}

TEST(PrepareGraphTest, LeavesOtherGraphsAlone) {
  GraphBuilder builder;
  const auto plain = MakeGraph(builder.Const("x"));
  ASSERT_TRUE(PrepareGraph(SwitchedOn(), plain.get()).ok());
  EXPECT_EQ(plain->num_op_nodes(), 1);
  const auto dynamic = MakeGraph(OneCall());
  ASSERT_TRUE(PrepareGraph(ConfigProto(), dynamic.get()).ok());
  EXPECT_EQ(dynamic->num_op_nodes(), 2);
}

TEST(PrepareGraphTest, ReportsFaultyOptionsWhereTheyMatter) {
  EXPECT_FALSE(PrepareGraph(Faulty(), MakeGraph(OneCall()).get()).ok());
  GraphBuilder builder;
  EXPECT_TRUE(PrepareGraph(Faulty(), MakeGraph(builder.Const("x")).get()).ok());
}

TEST(PrepareGraphTest, MarksNamesThatBodiesCannotHave) {
  GraphBuilder builder = OneCall();
  const auto graph = MakeGraph(builder.Const("F/n"));
  ASSERT_TRUE(PrepareGraph(SwitchedOn(), graph.get()).ok());
  for (const tensorflow::Node* node : graph->op_nodes()) {
    if (node->type_string() != kInvokeOp) continue;
    std::vector<std::string> names;
    ASSERT_TRUE(GetNodeAttr(node->attrs(), "_recursion_taken_names", &names).ok());
    EXPECT_EQ(names, std::vector<std::string>{"F/n"});
  }
}

}  // namespace
}  // namespace tensorflow_recursion
