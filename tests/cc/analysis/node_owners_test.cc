// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/node_owners.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {
namespace {

class NodeOwnersTest : public ::testing::Test {
 protected:
  void Find(const StaticGraph& graph) {
    built_ = MakeGraph(graph.graph());
    StructuralNodes structural;
    structural.Find(*built_);
    owners_.Find(*built_, structural);
  }
  const std::string& Of(const std::string& node) const { return owners_.Of(FindNode(*built_, node)); }

  // A Const that says whose body it is part of.
  static StaticGraph& Owned(StaticGraph* graph, const std::string& name, const std::string& owner) {
    const tensorflow::Tensor one(1);
    return graph->Node(name, "Const", {}, {{"dtype", kInt}, {"value", one}, {kBodyAttr, owner}});
  }

  std::unique_ptr<tensorflow::Graph> built_;
  NodeOwners owners_;
};

TEST_F(NodeOwnersTest, NodesWithoutTheAttributeBelongToThoseTheyAreConnectedWith) {
  StaticGraph graph;
  Owned(&graph, "of_f", "F").Op("added", "Identity", {"of_f"}).Op("behind", "Identity", {"added"});
  Owned(&graph, "of_main", "").Op("beside", "Identity", {"of_main"});
  Find(graph);
  ASSERT_TRUE(owners_.are_known());
  EXPECT_EQ(Of("of_f"), "F");
  EXPECT_EQ(Of("added"), "F");
  EXPECT_EQ(Of("behind"), "F");
  EXPECT_EQ(Of("beside"), "");
}

TEST_F(NodeOwnersTest, ABodysEntriesNameItsFunction) {
  StaticGraph graph;
  Owned(&graph, "of_main", "").Function("F", {"x"}).Op("y", "Identity", {"F/x"});
  Find(graph);
  EXPECT_EQ(Of("F/x"), "F");
  EXPECT_EQ(Of("y"), "F");
}

TEST_F(NodeOwnersTest, NothingIsKnownIfNoNodeHasTheAttribute) {
  StaticGraph graph;
  graph.Function("F", {"x"}).Op("y", "Identity", {"F/x"});
  Find(graph);
  EXPECT_FALSE(owners_.are_known());
}

}  // namespace
}  // namespace tensorflow_recursion
