// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/prepare_graph_pass.h"

#include <gtest/gtest.h>

#include "tests/cc/base/graphs.h"
#include "tests/cc/passes/switched_on.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::ConfigProto;
using tensorflow::Graph;

absl::Status Prepare(const ConfigProto& config, Graph* graph) { return PrepareGraph(config, graph->flib_def(), graph); }

ConfigProto Faulty() {
  ConfigProto config = SwitchedOn();
  auto* entry = config.mutable_graph_options()->mutable_rewrite_options()->mutable_custom_optimizers(0);
  (*entry->mutable_parameter_map())["max_depth"].set_i(0);
  return config;
}

TEST(PrepareGraphTest, PadsGraphsThatGrapplerWouldSkip) {
  const auto graph = MakeGraph(OneCall());
  ASSERT_TRUE(Prepare(SwitchedOn(), graph.get()).ok());
  EXPECT_EQ(graph->num_op_nodes(), 4);
}

TEST(PrepareGraphTest, LeavesOtherGraphsAlone) {
  GraphBuilder builder;
  const auto plain = MakeGraph(builder.Const("x"));
  ASSERT_TRUE(Prepare(SwitchedOn(), plain.get()).ok());
  EXPECT_EQ(plain->num_op_nodes(), 1);
  const auto dynamic = MakeGraph(OneCall());
  ASSERT_TRUE(Prepare(ConfigProto(), dynamic.get()).ok());
  EXPECT_EQ(dynamic->num_op_nodes(), 2);
}

TEST(PrepareGraphTest, ReportsFaultyOptionsWhereTheyMatter) {
  EXPECT_FALSE(Prepare(Faulty(), MakeGraph(OneCall()).get()).ok());
  GraphBuilder builder;
  EXPECT_TRUE(Prepare(Faulty(), MakeGraph(builder.Const("x")).get()).ok());
}

TEST(PrepareGraphTest, MarksNamesThatBodiesCannotHave) {
  GraphBuilder builder = OneCall();
  const auto graph = MakeGraph(builder.Const("F/n"));
  ASSERT_TRUE(Prepare(SwitchedOn(), graph.get()).ok());
  for (const tensorflow::Node* node : graph->op_nodes()) {
    if (node->type_string() != kInvokeOp) continue;
    std::vector<std::string> names;
    ASSERT_TRUE(GetNodeAttr(node->attrs(), "_recursion_taken_names", &names).ok());
    EXPECT_EQ(names, std::vector<std::string>{"F/n"});
  }
}

TEST(PrepareGraphTest, TakesTheFunctionsFromTheLibraryThatASessionKeepsApart) {
  const auto with_functions = MakeGraph(OneCall());
  GraphBuilder builder;
  const auto graph = MakeGraph(builder.Const("x").Call("y", "F", {"x"}).Const("F/n"));
  ASSERT_TRUE(PrepareGraph(SwitchedOn(), with_functions->flib_def(), graph.get()).ok());
  std::vector<std::string> names;
  ASSERT_TRUE(GetNodeAttr(FindNode(*graph, "y")->attrs(), kTakenNamesAttr, &names).ok());
  EXPECT_EQ(names, std::vector<std::string>{"F/n"});
}

// Grappler keeps only the functions that nodes name.
TEST(PrepareGraphTest, CallsNameTheForwardFunctionIfTheirRecordIsHandedOn) {
  for (const bool is_read : {false, true}) {
    GraphBuilder builder;
    Attrs attrs = GraphBuilder::CallAttrs("F", {kInt}, {kInt});
    attrs.emplace_back(kForwardAttr, "G");
    builder.Const("x").Node("y", kInvokeOp, {"x"}, attrs).Function(Endless("F", "F")).Function(Endless("G", "G"));
    if (is_read) builder.Node("reader", "Identity", {"y:1"}, {{"T", tensorflow::DT_VARIANT}});
    const auto graph = MakeGraph(builder);
    ASSERT_TRUE(Prepare(SwitchedOn(), graph.get()).ok());
    std::vector<tensorflow::NameAttrList> named;
    ASSERT_TRUE(GetNodeAttr(FindNode(*graph, "y")->attrs(), kRecordOfAttr, &named).ok());
    ASSERT_EQ(named.size(), is_read ? 1 : 0);
    EXPECT_EQ(is_read ? named[0].name() : "G", "G");
  }
}

}  // namespace
}  // namespace tensorflow_recursion
