// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/verify_nodes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op.h"
#include "tests/cc/base/graphs.h"
#include "tests/cc/expand/expansion.h"

namespace tensorflow_recursion {
namespace {

class VerifyNodesTest : public ::testing::Test {
 protected:
  static constexpr int64_t kTooLong = int64_t{1} << 40;

  // What is wrong with the functions of `builder_`, and with what its graph marks to be expanded.
  absl::Status VerifyAllFunctions() const {
    const tensorflow::FunctionLibraryDefinition library(tensorflow::OpRegistry::Global(), builder_.graph().library());
    return VerifyFunctions(tensorflow::Graph(library), library);
  }

  // A function F(n) = n with one more node in its body.
  void AddFunctionWith(const BodyNode& node, const std::string& name = "F") {
    builder_.Function(
        tensorflow::FunctionDefHelper::Create(name, {"n: int32"}, {"r: int32"}, {}, {node}, {{"r", "n"}}));
  }

  // Adds up values of two loops, which is not possible.
  void AddSumOfTwoLoops() {
    builder_.Const("x");
    for (const char* name : {"a", "b"}) builder_.Node(name, "Enter", {"x"}, {{"T", kInt}, {"frame_name", name}});
    builder_.Node("sum", "AddV2", {"a", "b"}, {{"T", kInt}});
  }
  void AddExit(const std::string& input) { builder_.Node("exit", "Exit", {input}, {{"T", kInt}}); }

  std::unique_ptr<tensorflow::Graph> Graph() const { return MakeGraph(builder_); }

  GraphBuilder builder_;
};

// --- Nodes of a GraphDef --------------------------------------------------------------------------

TEST_F(VerifyNodesTest, ASoundGraphPasses) {
  builder_.Const("x").Node("sum", "AddV2", {"x", "x"}, {{"T", kInt}}).Function(Endless("F", "F"));
  EXPECT_TRUE(VerifyNodes(builder_.graph()).ok()) << VerifyNodes(builder_.graph());
}

TEST_F(VerifyNodesTest, ANodeOfAnUnknownOperatorIsNamed) {
  builder_.Node("x", "NoSuchOperator");
  ExpectFault(VerifyNodes(builder_.graph()), "Node 'x': Op type not registered 'NoSuchOperator'");
}

TEST_F(VerifyNodesTest, ANodeMayBeACallOfAFunctionByItsName) {
  builder_.Const("x").Node("call", "F", {"x"}).Function(Endless("F", "F"));
  EXPECT_TRUE(VerifyNodes(builder_.graph()).ok()) << VerifyNodes(builder_.graph());
}

TEST_F(VerifyNodesTest, ANodeMayLeaveOutAttributesThatHaveDefaults) {
  builder_.Const("x").Node("cast", "Cast", {"x"}, {{"SrcT", kInt}, {"DstT", tensorflow::DT_FLOAT}});
  EXPECT_TRUE(VerifyNodes(builder_.graph()).ok()) << VerifyNodes(builder_.graph());
}

TEST_F(VerifyNodesTest, ANodeMayLeaveOutNoOtherAttribute) {
  builder_.Const("x").Node("sum", "AddV2", {"x", "x"});
  ExpectFault(VerifyNodes(builder_.graph()), "'T'");
}

TEST_F(VerifyNodesTest, ANodeHasAsManyInputsAsItsOperator) {
  builder_.Const("x").Node("sum", "AddV2", {"x"}, {{"T", kInt}});
  ExpectFault(VerifyNodes(builder_.graph()), "sum");
}

TEST_F(VerifyNodesTest, AListThatDoesNotFitIntoMemoryIsReportedBeforeItIsMade) {
  builder_.Node("sum", "AddN", {}, {{"T", kInt}, {"N", kTooLong}});
  ExpectFault(VerifyNodes(builder_.graph()), "Node 'sum' (AddN): attribute N is 1099511627776, at most");
}

TEST_F(VerifyNodesTest, NodesOfFunctionsAreCheckedForSuchLists) {
  AddFunctionWith(MakeBodyNode("pack", "Pack", {}, {{"T", kInt}, {"N", kTooLong}}));
  ExpectFault(VerifyNodes(builder_.graph()), "Node 'pack' (Pack): attribute N is");
}

TEST_F(VerifyNodesTest, OtherFaultsOfFunctionsAreLeftToTheirInstantiation) {
  AddFunctionWith(MakeBodyNode("unknown", "NoSuchOperator", {}));
  AddFunctionWith(MakeBodyNode("sum", "AddV2", {"n"}), "G");
  EXPECT_TRUE(VerifyNodes(builder_.graph()).ok()) << VerifyNodes(builder_.graph());
}

// --- Graphs ---------------------------------------------------------------------------------------

TEST_F(VerifyNodesTest, ADefinitionHasAnInputForEachThatTheNodeHas) {
  builder_.Const("x").Const("before").Node("sum", "AddV2", {"x", "x", "^before"}, {{"T", kInt}});
  const std::unique_ptr<tensorflow::Graph> graph = Graph();
  tensorflow::Node* sum = FindNode(*graph, "sum");
  EXPECT_EQ(DefinitionWithEdges(*sum).input_size(), 2);
  EXPECT_EQ(DefinitionWithEdges(*sum).op(), "AddV2");
}

TEST_F(VerifyNodesTest, AnInputWithoutAnEdgeIsMissing) {
  builder_.Const("x").Node("sum", "AddV2", {"x", "x"}, {{"T", kInt}});
  const std::unique_ptr<tensorflow::Graph> graph = Graph();
  EXPECT_TRUE(VerifyGraph(*graph).ok()) << VerifyGraph(*graph);
  const tensorflow::Edge* edge = nullptr;
  ASSERT_TRUE(FindNode(*graph, "sum")->input_edge(1, &edge).ok());
  graph->RemoveEdge(edge);
  ExpectFault(VerifyGraph(*graph), "Node 'sum' (AddV2): input 1 of 2 is missing");
}

TEST_F(VerifyNodesTest, ANodeOfAGraphSuitsItsOperator) {
  builder_.Const("x").Node("sum", "AddV2", {"x", "x"}, {{"T", kInt}});
  const std::unique_ptr<tensorflow::Graph> graph = Graph();
  FindNode(*graph, "sum")->ClearAttr("T");
  ExpectFault(VerifyGraph(*graph), "'T'");
}

// --- Loops ----------------------------------------------------------------------------------------

TEST_F(VerifyNodesTest, ALoopThatFitsTogetherPasses) {
  builder_.Const("x");
  AddLoop(&builder_, "loop", "x");
  builder_.Node("loop/iterate", "NextIteration", {"loop/next"}, {{"T", kInt}});
  const std::unique_ptr<tensorflow::Graph> graph = Graph();
  for (const auto& verify : {VerifyGraph, VerifyLoops, VerifyExits}) EXPECT_TRUE(verify(*graph).ok()) << verify(*graph);
}

TEST_F(VerifyNodesTest, AnExitLeavesALoop) {
  builder_.Const("x");
  AddExit("x");
  const std::unique_ptr<tensorflow::Graph> graph = Graph();
  for (const auto& verify : {VerifyGraph, VerifyLoops, VerifyExits}) {
    ExpectFault(verify(*graph), "Node 'exit' (Exit) is in no loop, because its input 'x' is in none");
  }
}

TEST_F(VerifyNodesTest, NodesOfTwoLoopsDoNotFitTogether) {
  AddSumOfTwoLoops();
  const std::unique_ptr<tensorflow::Graph> graph = Graph();
  for (const auto& verify : {VerifyGraph, VerifyLoops}) ExpectFault(verify(*graph), "sum");
}

TEST_F(VerifyNodesTest, VerifyExitsLeavesOtherFaultsOfLoopsToTensorFlow) {
  AddSumOfTwoLoops();
  AddExit("sum");
  EXPECT_TRUE(VerifyExits(*Graph()).ok()) << VerifyExits(*Graph());
}

// --- Functions ------------------------------------------------------------------------------------

TEST_F(VerifyNodesTest, AFunctionWithoutFaultsPasses) {
  AddFunctionWith(BodyConst("one"));
  EXPECT_TRUE(VerifyAllFunctions().ok()) << VerifyAllFunctions();
}

TEST_F(VerifyNodesTest, AConstantOfAFunctionHasTheDtypeThatItStates) {
  AddFunctionWith(MakeBodyNode("one", "Const", {}, {{"dtype", kInt}, {"value", tensorflow::Tensor(1.0F)}}));
  ExpectFault(VerifyAllFunctions(),
              "Function 'F': Node 'one' (Const): its value is float, its attribute dtype says int32");
}

TEST_F(VerifyNodesTest, AnAttributeInAFunctionIsOfTheRightKind) {
  AddFunctionWith(MakeBodyNode("minus", "Neg", {"n"}, {{"T", 5}}));
  ExpectFault(VerifyAllFunctions(), "Function 'F': Node 'minus' (Neg): attribute T: ");
}

TEST_F(VerifyNodesTest, AnAttributeMayBeKnownOnlyWhenTheFunctionIsInstantiated) {
  AddFunctionWith(MakeBodyNode("minus", "Neg", {"n"}, {{"T", "$T"}}));
  EXPECT_TRUE(VerifyAllFunctions().ok()) << VerifyAllFunctions();
}

TEST_F(VerifyNodesTest, ANodeOfAFunctionMakesNoListThatDoesNotFitIntoMemory) {
  AddFunctionWith(MakeBodyNode("pack", "Pack", {}, {{"T", kInt}, {"N", kTooLong}}));
  ExpectFault(VerifyAllFunctions(), "Function 'F': Node 'pack' (Pack): attribute N is");
}

TEST_F(VerifyNodesTest, AnUnknownOperatorInAFunctionIsLeftToTensorFlow) {
  AddFunctionWith(MakeBodyNode("unknown", "NoSuchOperator", {}));
  EXPECT_TRUE(VerifyAllFunctions().ok()) << VerifyAllFunctions();
}

TEST_F(VerifyNodesTest, WhatIsMarkedToBeExpandedHasFunctionsThatFit) {
  BodyNode conditional = BodyIf("if", "missing", "missing");
  conditional.arg = {"n", "n"};
  AddFunctionWith(conditional);
  EXPECT_TRUE(VerifyAllFunctions().ok()) << "it is not marked, so its kernel reports that";
  builder_ = GraphBuilder();
  conditional.attr.emplace_back("_lower_using_switch_merge", true);
  AddFunctionWith(conditional);
  ExpectFault(VerifyAllFunctions(), "Function 'F': Node 'if' (If): its functions are missing or do not fit");
}

}  // namespace
}  // namespace tensorflow_recursion
