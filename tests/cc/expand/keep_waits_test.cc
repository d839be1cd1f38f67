// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/keep_waits.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "tests/cc/expand/expansion.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionDef;
using tensorflow::FunctionDefHelper;
using tensorflow::GraphDef;

// An assignment to a variable, a value that waits for it, and a call H(value) that knows nothing of the variable.
GraphBuilder AssignAndCall() {
  GraphBuilder builder;
  builder.Function(FunctionDefHelper::Create("H", {"n: int32"}, {"r: int32"}, {}, {}, {{"r", "n"}}));
  builder.Node("v", "VarHandleOp", {}, kOfInts);
  builder.Const("x").Node("assign", "AssignVariableOp", {"v", "x"}, {{"dtype", kInt}});
  builder.Node("assigned", "Identity", {"x", "^assign"}, {{"T", kInt}}).Call("y", "H", {"assigned"}, kInts);
  return builder;
}

Inputs InputsOfRead(GraphBuilder builder, const Inputs& waits) {
  Inputs inputs = {"v"};
  inputs.insert(inputs.end(), waits.begin(), waits.end());
  builder.Node("read", "ReadVariableOp", inputs, {{"dtype", kInt}});
  return InputsOf(Expand(builder.graph(), {"read:0", "y:0"}), "read");
}

TEST(KeepWaitsTest, WaitsBesideACallGoThroughAMerge) {
  GraphBuilder builder = AssignAndCall();
  builder.Node("read", "ReadVariableOp", {"v", "^assign", "^y"}, {{"dtype", kInt}});
  const GraphDef expanded = Expand(builder.graph(), {"read:0"});
  EXPECT_EQ(InputsOf(expanded, "read"), (Inputs{"v", "^assign/kept", "^y"}));
  EXPECT_EQ(Find(expanded, "assign/kept")->op(), "Merge");
  EXPECT_EQ(InputsOf(expanded, "assign/kept"), Inputs{"assign/done"});
  EXPECT_EQ(InputsOf(expanded, "assign/done"), Inputs{"^assign"});
}

TEST(KeepWaitsTest, OtherWaitsStay) {
  EXPECT_EQ(InputsOfRead(AssignAndCall(), {"^assign"}), (Inputs{"v", "^assign"})) << "no call is before it";
  EXPECT_EQ(InputsOfRead(AssignAndCall(), {"^x", "^y"}), (Inputs{"v", "^x", "^y"})) << "a constant is no effect";
  GraphBuilder chain = AssignAndCall();
  chain.Call("z", "H", {"x", "^y"}, kInts);
  EXPECT_EQ(InputsOfRead(chain, {"^y", "^z"}), (Inputs{"v", "^y/kept", "^z"}));
  EXPECT_EQ(InputsOfRead(chain, {"^z"}), (Inputs{"v", "^z"})) << "nothing leads past the call";
}

TEST(KeepWaitsTest, BodiesKeepTheirWaits) {
  GraphBuilder builder = AssignAndCall();
  const FunctionDef function =
      FunctionDefHelper::Create("F", {"v: resource", "n: int32"}, {"r: int32"}, {},
                                {MakeBodyNode("write", "AssignVariableOp", {"v", "n"}, {{"dtype", kInt}}),
                                 MakeBodyNode("written", "Identity", {"n", "^write"}, {{"T", kInt}}),
                                 BodyCall("call", "H", {"written:output:0"}, kInts),
                                 MakeBodyNode("read", "ReadVariableOp", {"v", "^write", "^call"}, {{"dtype", kInt}})},
                                {{"r", "read:value:0"}});
  builder.Function(function).Call("f", "F", {"v", "x"}, {tensorflow::DT_RESOURCE, kInt});
  const GraphDef expanded = Expand(builder.graph(), {"f:0"});
  EXPECT_EQ(InputsOf(expanded, "F/read"), (Inputs{"F/v", "^F/call", "^F/write/kept"}));
}

// Before Grappler, which sees calls as single nodes.
TEST(KeepWaitsTest, MainGraphsKeepTheirWaits) {
  GraphBuilder builder = AssignAndCall();
  builder.Node("read", "ReadVariableOp", {"v", "^assign", "^y"}, {{"dtype", kInt}});
  std::unique_ptr<tensorflow::Graph> graph;
  const absl::Status constructed = Construct(builder.graph(), &graph);
  ASSERT_TRUE(constructed.ok()) << constructed;
  const absl::Status kept = KeepWaits(graph.get());
  ASSERT_TRUE(kept.ok()) << kept;
  GraphDef def;
  graph->ToGraphDef(&def);
  const Inputs inputs = InputsOf(def, "read");
  ASSERT_EQ(inputs.size(), 3);
  EXPECT_EQ(inputs[0], "v");
  EXPECT_TRUE(absl::StartsWith(inputs[1], "^assign/kept")) << inputs[1];
  EXPECT_EQ(inputs[2], "^y");
  const tensorflow::NodeDef* merge = Find(def, inputs[1].substr(1));
  EXPECT_EQ(merge->op(), "Merge");
  EXPECT_EQ(merge->attr().at("_class").list().s(0), "loc:@assign");
}

}  // namespace
}  // namespace tensorflow_recursion
