// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/emission.h"

#include <gtest/gtest.h>

#include "tests/cc/expand/expansion.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionDefHelper;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

// Bodies.

TEST(EmissionTest, InputlessNodesOfBodiesStartByTheirFrameStart) {
  EXPECT_EQ(InputsOf(Expand(CallAndReader().graph(), {"z:0"}), "F/one"), Inputs{"^F/recursion_frame_start"});
}

TEST(EmissionTest, FrameStartsCarryTheOptions) {
  ExpandOptions options;
  options.run.max_depth = 17;
  options.run.workers = 3;
  GraphDef expanded;
  ASSERT_TRUE(ExpandCalls(CallAndReader().graph(), options, &expanded).ok());
  EXPECT_EQ(Find(expanded, "F/recursion_frame_start")->attr().at("max_depth").i(), 17);
  EXPECT_EQ(Find(expanded, "F/recursion_frame_start")->attr().at("workers").i(), 3);
}

// Side effects.

// F(n) asserts, calls itself, and returns n.
GraphBuilder Effectful() {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"}).Node("after", "NoOp", {"^y"});
  builder.Function(FunctionDefHelper::Create(
      "F", {"n: int32"}, {"r: int32"}, {},
      {BodyTrue("true"),
       MakeBodyNode("assert", "Assert", {"true:output:0", "n"}, {{"T", tensorflow::DataTypeSlice(kInts)}}),
       BodyCall("call", "F", {"n"})},
      {{"r", "n"}}));
  return builder;
}

TEST(EmissionTest, SideEffectsOfALiveFunctionStay) {
  const GraphDef expanded = Expand(Effectful().graph(), {"y:0"});
  EXPECT_TRUE(HasInput(expanded, "recursion_keep_alive/F", "^F/assert"));
  EXPECT_TRUE(HasInput(expanded, "recursion_keep_alive/F", "^F/call/call_0"));
  EXPECT_EQ(Find(expanded, "F/recursion_done"), nullptr) << "nobody waits for them";
}

TEST(EmissionTest, ControlConsumersWaitForSideEffects) {
  const GraphDef expanded = Expand(Effectful().graph(), {"after"});
  EXPECT_EQ(InputsOf(expanded, "y"), (Inputs{"^y/return_0", "^y/return_1"}));
  EXPECT_EQ(Find(expanded, "F/recursion_done")->attr().at("index").i(), 1);
  EXPECT_EQ(InputsOf(expanded, "F/recursion_done/true"), Inputs{"^F/recursion_done/effects"});
  EXPECT_EQ(Find(expanded, "F/recursion_done/effects")->op(), "ControlTrigger") << "dead branches must not kill it";
  EXPECT_EQ(InputsOf(expanded, "F/recursion_done/effects"), (Inputs{"^F/assert", "^F/call/return_1"}));
}

TEST(EmissionTest, FunctionsWithoutOutputsSayWhenTheyAreDone) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"}, {kInt}, {});
  builder.Function(
      FunctionDefHelper::Create("F", {"n: int32"}, {}, {}, {BodyCall("call", "F", {"n"}, {kInt}, {})}, {}));
  const GraphDef expanded = Expand(builder.graph(), {"y"});
  EXPECT_EQ(Find(expanded, "y")->op(), "NoOp");
  EXPECT_EQ(InputsOf(expanded, "y"), Inputs{"^y/return_0"});
  EXPECT_EQ(InputsOf(expanded, "F/recursion_done/true"), Inputs{"^F/recursion_frame_start"});
}

// Owners.

std::string OwnerOf(const NodeDef& node) {
  const auto owner = node.attr().find(kBodyAttr);
  return owner == node.attr().end() ? "not said" : owner->second.s();
}

TEST(EmissionTest, EveryNodeSaysWhoseItIs) {
  GraphBuilder builder = Effectful();
  builder.Call("other", "G", {"x"}).Function(Endless("G", "F"));
  const GraphDef expanded = Expand(builder.graph(), {"after", "other:0"});
  for (const NodeDef& node : expanded.node()) {
    const std::string prefix = node.name().substr(0, 2);
    EXPECT_EQ(OwnerOf(node), prefix == "F/" ? "F" : prefix == "G/" ? "G" : "") << node.name();
  }
}

TEST(EmissionTest, WhatAnEarlierTransformationSaidStays) {
  GraphBuilder builder;
  builder.Call("g", "G", {"x"}).Function(Endless("G", "G"));
  GraphDef graph = builder.graph();
  const GraphDef earlier = Expand(Effectful().graph(), {"after"});
  for (NodeDef node : earlier.node()) {
    if (node.name() == "F/n") node.mutable_attr()->erase(kBodyAttr);
    *graph.add_node() = node;
  }
  const GraphDef expanded = Expand(graph, {});
  EXPECT_EQ(OwnerOf(*Find(expanded, "F/assert")), "F");
  EXPECT_EQ(OwnerOf(*Find(expanded, "F/n")), "not said")
      << "it is not of the main graph just because it came in with it";
  EXPECT_EQ(OwnerOf(*Find(expanded, "G/n")), "G");
}

}  // namespace
}  // namespace tensorflow_recursion
