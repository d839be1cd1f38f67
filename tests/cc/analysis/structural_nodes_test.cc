// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/structural_nodes.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {
namespace {

class StructuralNodesTest : public ::testing::Test {
 protected:
  // A call of Id, whose Return reads a token of a KeepAlive that waits for the body's result by way of `bundle`.
  StructuralNodesTest() {
    graph_.Arg("x").Function("Id", {"n"}).Result("Id", "Id/n");
    graph_.Node("bundle", "NoOp", {"^Id/result_0"}).Node("keep_alive", kKeepAliveOp, {"^bundle"});
    graph_.Node("main/call_0", kCallOp, {"x"}, StaticGraph::SiteAttrs("Id", 1, 0));
    graph_.Return("main", "Id", 1, 0, {"keep_alive", "^main/call_0"});
  }

  void Find() {
    built_ = MakeGraph(graph_.graph());
    structural_.Find(*built_);
  }
  bool Contains(const std::string& node) const { return structural_.Contains(FindNode(*built_, node)); }

  StaticGraph graph_;
  std::unique_ptr<tensorflow::Graph> built_;
  StructuralNodes structural_;
};

TEST_F(StructuralNodesTest, KeepAlivesAndWhatTheyWaitForByBundlesAreStructural) {
  Find();
  EXPECT_TRUE(Contains("keep_alive"));
  EXPECT_TRUE(Contains("bundle"));
  for (const char* node : {"x", "Id/n", "Id/result_0", "main/call_0", "main/return_0"}) EXPECT_FALSE(Contains(node));
}

TEST_F(StructuralNodesTest, ANoOpThatOthersWaitForIsNone) {
  graph_.Const("one", 1, {"^bundle"});
  Find();
  EXPECT_FALSE(Contains("bundle"));
}

TEST_F(StructuralNodesTest, OnlyEdgesBetweenOthersAreReal) {
  Find();
  for (const tensorflow::Edge* edge : FindNode(*built_, "main/return_0")->in_edges()) {
    EXPECT_EQ(structural_.IsReal(edge), edge->src()->name() == "main/call_0") << edge->DebugString();
  }
}

}  // namespace
}  // namespace tensorflow_recursion
