// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/branch_inputs.h"

#include <gtest/gtest.h>

#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::GraphDef;
using tensorflow::Node;

constexpr char kInside[] = "branch/branch_input_1";

// x goes into a branch, where two operators read it and one waits for it, and out again.
GraphBuilder Branch() {
  GraphBuilder builder;
  builder.Const("x").Node("p", "Const", {}, {{"dtype", tensorflow::DT_BOOL}, {"value", tensorflow::Tensor(true)}});
  builder.Node("branch", "Switch", {"x", "p"}, {{"T", kInt}, {kBodyAttr, "F"}});
  builder.Node("neg", "Neg", {"branch:1"}, {{"T", kInt}}).Node("abs", "Abs", {"branch:1"}, {{"T", kInt}});
  builder.Node("pivot", "Identity", {"branch:1"}, {{"T", kInt}}).Const("inside", 1, {"^pivot"});
  builder.Node("merge", "Merge", {"branch", "neg"}, {{"T", kInt}, {"N", 2}});
  return builder;
}

GraphDef WithInputs(const GraphBuilder& builder) {
  GraphDef graph = builder.graph();
  AddBranchInputs(&graph);
  return graph;
}

GraphDef Removed(tensorflow::Graph* graph) {
  const absl::Status status = RemoveBranchInputs(graph);
  EXPECT_TRUE(status.ok()) << status;
  GraphDef result;
  graph->ToGraphDef(&result);
  return result;
}

TEST(BranchInputsTest, AllThatReadAnOutputOfABranchShareOneInput) {
  const GraphDef graph = WithInputs(Branch());
  EXPECT_EQ(InputsOf(graph, kInside), Inputs{"branch:1"});
  EXPECT_EQ(InputsOf(graph, "neg"), Inputs{kInside});
  EXPECT_EQ(InputsOf(graph, "abs"), Inputs{kInside});
  EXPECT_EQ(Find(graph, kInside)->attr().at(kBodyAttr).s(), "F") << "it is part of the body that the branch is in";
}

TEST(BranchInputsTest, PivotsAndMergesReadTheBranch) {
  const GraphDef graph = WithInputs(Branch());
  EXPECT_EQ(InputsOf(graph, "pivot"), Inputs{"branch:1"});
  EXPECT_EQ(InputsOf(graph, "merge"), (Inputs{"branch", "neg"}));
  EXPECT_EQ(NodesOf(graph, kBranchInputOp).size(), 1);
}

TEST(BranchInputsTest, ThePredicateHasNone) {
  GraphBuilder builder;
  builder.Node("p", "Const", {}, {{"dtype", tensorflow::DT_BOOL}, {"value", tensorflow::Tensor(true)}});
  builder.Node("branch", "Switch", {"p", "p"}, {{"T", tensorflow::DT_BOOL}});
  builder.Node("not", "LogicalNot", {"branch:1"});
  EXPECT_TRUE(NodesOf(WithInputs(builder), kBranchInputOp).empty());
}

TEST(BranchInputsTest, HandlesHaveThem) {
  GraphBuilder builder;
  builder.Node("v", "VarHandleOp", {}, {{"dtype", kInt}, {"shape", tensorflow::PartialTensorShape({-1})}});
  builder.Node("p", "Const", {}, {{"dtype", tensorflow::DT_BOOL}, {"value", tensorflow::Tensor(true)}});
  builder.Node("branch", "Switch", {"v", "p"}, {{"T", tensorflow::DT_RESOURCE}});
  builder.Node("read", "ReadVariableOp", {"branch:1"}, {{"dtype", kInt}});
  EXPECT_EQ(InputsOf(WithInputs(builder), "read"), Inputs{kInside});
}

TEST(BranchInputsTest, SoHaveHandlesThatALoopOnlyReads) {
  for (const bool is_constant : {true, false}) {
    GraphBuilder builder;
    builder.Node("v", "VarHandleOp", {}, {{"dtype", kInt}, {"shape", tensorflow::PartialTensorShape({-1})}});
    builder.Node("enter", "Enter", {"v"},
                 {{"T", tensorflow::DT_RESOURCE}, {"frame_name", "loop"}, {"is_constant", is_constant}});
    builder.Node("read", "ReadVariableOp", {"enter"}, {{"dtype", kInt}});
    EXPECT_EQ(InputsOf(WithInputs(builder), "read"), Inputs{is_constant ? "enter/branch_input_0" : "enter"});
  }
}

TEST(BranchInputsTest, ConstantsThatALoopReadsHaveNone) {
  GraphBuilder builder;
  builder.Const("x").Node("enter", "Enter", {"x"}, {{"T", kInt}, {"frame_name", "loop"}, {"is_constant", true}});
  builder.Node("read", "Neg", {"enter"}, {{"T", kInt}});
  EXPECT_EQ(InputsOf(WithInputs(builder), "read"), Inputs{"enter"}) << "TensorFlow computes it once";
}

TEST(BranchInputsTest, OneIsEnough) {
  GraphDef once = WithInputs(Branch());
  GraphDef twice = once;
  AddBranchInputs(&twice);
  EXPECT_EQ(NodesOf(twice, kBranchInputOp).size(), NodesOf(once, kBranchInputOp).size());
}

TEST(BranchInputsTest, EachSideOfACaseHasItsOwn) {
  GraphBuilder builder;
  builder.Const("x").Const("k").Node("case", "_SwitchN", {"x", "k"}, {{"T", kInt}, {"num_outs", 3}});
  builder.Node("first", "Neg", {"case"}, {{"T", kInt}}).Node("third", "Neg", {"case:2"}, {{"T", kInt}});
  const GraphDef graph = WithInputs(builder);
  EXPECT_EQ(InputsOf(graph, "first"), Inputs{"case/branch_input_0"});
  EXPECT_EQ(InputsOf(graph, "third"), Inputs{"case/branch_input_2"});
}

TEST(BranchInputsTest, ANameThatIsTakenGetsANumber) {
  GraphBuilder builder = Branch();
  builder.Const(kInside);
  EXPECT_EQ(InputsOf(WithInputs(builder), "neg"), Inputs{std::string(kInside) + "_1"});
}

TEST(BranchInputsTest, RemovingThemGivesTheGraphBack) {
  const auto graph = MakeGraph(WithInputs(Branch()));
  const GraphDef removed = Removed(graph.get());
  EXPECT_TRUE(NodesOf(removed, kBranchInputOp).empty());
  EXPECT_EQ(InputsOf(removed, "neg"), Inputs{"branch:1"});
  EXPECT_EQ(InputsOf(removed, "abs"), Inputs{"branch:1"});
  EXPECT_EQ(removed.node_size(), Branch().graph().node_size());
}

TEST(BranchInputsTest, AGraphWithDevicesGetsTheSame) {
  const auto graph = MakeGraph(Branch());
  for (Node* node : graph->op_nodes()) node->set_assigned_device_name(kDeviceA);
  const absl::Status status = AddBranchInputs(graph.get());
  ASSERT_TRUE(status.ok()) << status;
  std::vector<const Node*> added;
  for (const Node* node : graph->op_nodes()) {
    if (node->type_string() == kBranchInputOp) added.push_back(node);
  }
  ASSERT_EQ(added.size(), 1);
  EXPECT_EQ(added[0]->assigned_device_name(), kDeviceA);
  GraphDef def;
  graph->ToGraphDef(&def);
  EXPECT_EQ(InputsOf(def, added[0]->name()), Inputs{"branch:1"});
  EXPECT_EQ(InputsOf(def, "neg"), Inputs{added[0]->name()});
  EXPECT_EQ(InputsOf(def, "pivot"), Inputs{"branch:1"});
  EXPECT_EQ(InputsOf(def, "merge"), (Inputs{"branch", "neg"}));
  EXPECT_EQ(InputsOf(Removed(graph.get()), "neg"), Inputs{"branch:1"});
}

TEST(BranchInputsTest, OneThatIsWaitedForBecomesAnIdentity) {
  GraphDef with_inputs = WithInputs(Branch());
  for (auto& node : *with_inputs.mutable_node()) {
    if (node.name() == "inside") node.add_input("^" + std::string(kInside));
  }
  const auto graph = MakeGraph(with_inputs);
  for (Node* node : graph->op_nodes()) node->set_assigned_device_name(kDeviceA);
  const GraphDef removed = Removed(graph.get());
  const std::string identity = std::string(kInside) + "/waited_for";
  const Inputs of_neg = InputsOf(removed, "neg");
  ASSERT_EQ(of_neg.size(), 1);
  EXPECT_EQ(of_neg[0].rfind(identity, 0), 0) << of_neg[0];
  EXPECT_EQ(Find(removed, of_neg[0])->op(), "Identity");
  EXPECT_EQ(InputsOf(removed, of_neg[0]), Inputs{"branch:1"});
  EXPECT_TRUE(HasInput(removed, "inside", "^" + of_neg[0]));
  EXPECT_EQ(FindNode(*graph, of_neg[0])->assigned_device_name(), kDeviceA);
}

}  // namespace
}  // namespace tensorflow_recursion
