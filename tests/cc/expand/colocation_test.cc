// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/colocation.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::NodeDef;

Inputs GroupsOf(const NodeDef& node) {
  const auto groups = node.attr().find("_class");
  if (groups == node.attr().end()) return {"none"};
  return {groups->second.list().s().begin(), groups->second.list().s().end()};
}

TEST(ColocationTest, PartnersGetTheirNewNames) {
  GraphBuilder builder;
  builder.Node("x", "NoOp", {}, {{"_class", Inputs{"loc:@y", "loc:@other", "free"}}});
  NodeDef node = builder.graph().node(0);
  RenameColocation({{"y", "F/y"}}, &node);
  EXPECT_EQ(GroupsOf(node), (Inputs{"loc:@F/y", "loc:@other", "free"}));
}

TEST(ColocationTest, NodesPartFromTheNamedPartnersAlone) {
  GraphBuilder builder;
  builder.Node("x", "NoOp", {}, {{"_class", Inputs{"loc:@y", "loc:@other", "free"}}});
  std::unique_ptr<tensorflow::Graph> graph;
  ASSERT_TRUE(Construct(builder.graph(), &graph).ok());
  tensorflow::Node* const node = FindNode(*graph, "x");
  PartFrom([](const std::string& name) { return name == "y"; }, node);
  EXPECT_EQ(GroupsOf(node->def()), (Inputs{"loc:@other", "free"}));
  PartFrom([](const std::string& /*name*/) { return true; }, node);
  EXPECT_EQ(GroupsOf(node->def()), Inputs{"none"});
}

TEST(ColocationTest, PartnersThatAreGoneAreForgotten) {
  GraphBuilder builder;
  builder.Node("x", "NoOp", {}, {{"_class", Inputs{"loc:@gone", "loc:@y", "free"}}});
  builder.Node("y", "NoOp", {}, {{"_class", Inputs{"loc:@gone"}}}).Node("z", "NoOp");
  tensorflow::GraphDef graph = builder.graph();
  DropDanglingColocation(&graph);
  EXPECT_EQ(GroupsOf(graph.node(0)), (Inputs{"loc:@y", "free"}));
  EXPECT_EQ(GroupsOf(graph.node(1)), Inputs{"none"});
  EXPECT_EQ(GroupsOf(graph.node(2)), Inputs{"none"});
}

TEST(ColocationTest, GroupsAreOfAllThatNameOneAnother) {
  GraphBuilder builder;
  builder.Node("a", "NoOp").Node("b", "NoOp", {}, {{"_class", Inputs{"loc:@a"}}});
  builder.Node("c", "NoOp").Node("d", "NoOp", {}, {{"_class", Inputs{"loc:@c", "loc:@b"}}}).Node("e", "NoOp");
  std::unique_ptr<tensorflow::Graph> graph;
  ASSERT_TRUE(Construct(builder.graph(), &graph).ok());
  const ColocationGroups groups(*graph);
  for (const char* node : {"b", "c", "d"}) {
    EXPECT_EQ(groups.Of(*FindNode(*graph, node)), groups.Of(*FindNode(*graph, "a")));
  }
  EXPECT_NE(groups.Of(*FindNode(*graph, "e")), groups.Of(*FindNode(*graph, "a")));
}

}  // namespace
}  // namespace tensorflow_recursion
