// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/flatten.h"

#include <gtest/gtest.h>

#include "cc/base/names.h"
#include "tests/cc/expand/expansion.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionDefHelper;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

TEST(FlattenTest, BodiesAvoidNamesOfTheMainGraph) {
  GraphBuilder builder = CallAndReader();
  builder.Const("F/n").Call("w", "F", {"F/n"});
  const GraphDef expanded = Expand(builder.graph(), {"w:0"});
  EXPECT_EQ(Find(expanded, "F/n")->op(), "Const");
  EXPECT_EQ(Names(NodesOf(expanded, kEntryOp)), (std::set<std::string>{"F/n_1"}));
}

TEST(FlattenTest, BodyNamesDoNotDependOnWhatIsFetched) {
  GraphBuilder whole = CallAndReader();
  whole.Const("F/n").Const("F/unrelated");
  std::vector<std::string> names;
  for (const NodeDef& node : whole.graph().node()) names.push_back(node.name());
  const std::vector<std::string> taken = TakenNames(names, whole.graph().library());
  EXPECT_EQ(taken, std::vector<std::string>{"F/n"});

  GraphDef pruned = CallAndReader().graph();
  SetAttrValue(taken, &(*pruned.mutable_node(1)->mutable_attr())[kTakenNamesAttr]);
  EXPECT_EQ(Names(NodesOf(Expand(pruned, {"z:0"}), kEntryOp)), (std::set<std::string>{"F/n_1"}));
}

TEST(FlattenTest, ResultsAvoidNamesOfBodyNodes) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"});
  builder.Function(FunctionDefHelper::Create("F", {"n: int32"}, {"n_out: int32"}, {},
                                             {MakeBodyNode("n_out", "Identity", {"n"}, {{"T", kInt}})},
                                             {{"n_out", "n_out:output:0"}}));
  const GraphDef expanded = Expand(builder.graph(), {"y:0"});
  EXPECT_EQ(Find(expanded, "F/n_out")->op(), "Identity");
  EXPECT_EQ(Names(NodesOf(expanded, kResultOp)), (std::set<std::string>{"F/n_out_1"}));
}

TEST(FlattenTest, LoopsOfBodiesHaveFramesOfTheirOwn) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"});
  const Attrs type = {{"T", kInt}};
  auto loop = [&](const std::string& function) {
    return FunctionDefHelper::Create(
        function, {"n: int32"}, {"r: int32"}, {},
        {MakeBodyNode("enter", "Enter", {"n"}, {{"T", kInt}, {"frame_name", "loop"}}),
         MakeBodyNode("merge", "Merge", {"enter:output:0", "iterate:output:0"}, {{"T", kInt}, {"N", 2}}),
         MakeBodyNode("limit", "Enter", {"n"}, {{"T", kInt}, {"frame_name", "loop"}, {"is_constant", true}}),
         MakeBodyNode("less", "Less", {"merge:output:0", "limit:output:0"}, type),
         MakeBodyNode("cond", "LoopCond", {"less:z:0"}),
         MakeBodyNode("switch", "Switch", {"merge:output:0", "cond:output:0"}, type),
         BodyCall("call", "F", {"switch:output_true:0"}),
         MakeBodyNode("iterate", "NextIteration", {"call:results:0"}, type),
         MakeBodyNode("exit", "Exit", {"switch:output_false:0"}, type)},
        {{"r", "exit:output:0"}});
  };
  builder.Call("g", "G", {"y"}).Function(loop("F")).Function(loop("G"));
  const GraphDef expanded = Expand(builder.graph(), {"g:0"});
  EXPECT_EQ(Find(expanded, "F/enter")->attr().at("frame_name").s(), "F/loop");
  EXPECT_EQ(Find(expanded, "F/limit")->attr().at("frame_name").s(), "F/loop");
  EXPECT_EQ(Find(expanded, "G/enter")->attr().at("frame_name").s(), "G/loop");
  EXPECT_EQ(InputsOf(expanded, "F/call/return_0"), Inputs{"^F/call/call_0"});
}

}  // namespace
}  // namespace tensorflow_recursion
