// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/name_table.h"

#include <gtest/gtest.h>

#include "cc/base/names.h"
#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {
namespace {

TEST(NameTableTest, NumbersNamesThatAreTaken) {
  NameTable names;
  names.Take("n");
  EXPECT_EQ(names.Unique("n"), "n_1");
  EXPECT_EQ(names.Unique("n"), "n_2");
  EXPECT_EQ(names.Unique("m"), "m");
}

TEST(NameTableTest, PrefixesAreNodeNames) {
  EXPECT_EQ(PrefixFor("Fib"), "Fib/");
  EXPECT_EQ(PrefixFor("a b:c"), "a_b_c/");
  EXPECT_EQ(PrefixFor("_f"), "function_f/");
}

TEST(NameTableTest, KnowsNodesMarksAndFrames) {
  GraphBuilder builder;
  builder.Const("x").Node("enter", "Enter", {"x"}, {{"T", kInt}, {"frame_name", "loop"}});
  tensorflow::GraphDef graph = builder.graph();
  (*graph.mutable_node(0)->mutable_attr())[kTakenNamesAttr].mutable_list()->add_s("F/n");
  GraphNames names = NamesOf(graph);
  EXPECT_EQ(names.nodes.Unique("enter"), "enter_1");
  EXPECT_EQ(names.nodes.Unique("F/n"), "F/n_1");
  EXPECT_EQ(names.frames.Unique("loop"), "loop_1");
  EXPECT_EQ(names.nodes.Unique("loop"), "loop");
}

TEST(NameTableTest, FindsNamesThatBodiesMayWant) {
  GraphBuilder builder;
  builder.Function(Endless("F", "F"));
  const std::vector<std::string> nodes = {"F/n", "F/one/sub", "F/other", "G/n", "F__copy3/add", "F__copy/add"};
  EXPECT_EQ(TakenNames(nodes, builder.graph().library()),
            (std::vector<std::string>{"F/n", "F/one/sub", "F__copy3/add"}));
}

}  // namespace
}  // namespace tensorflow_recursion
