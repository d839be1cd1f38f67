// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/reference_reads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tests/cc/expand/expansion.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::Graph;
using tensorflow::Node;

class ReferenceReadsTest : public ::testing::Test {
 protected:
  ReferenceReadsTest() : graph_(tensorflow::OpRegistry::Global()) {
    builder_.Node("v", "VariableV2", {}, {{"dtype", DT_FLOAT}, {"shape", tensorflow::TensorShape({})}});
  }

  void ReadByKernels() {
    ASSERT_TRUE(tensorflow::ConvertGraphDefToGraph({}, builder_.graph(), &graph_).ok());
    ASSERT_TRUE(ReadReferencesByKernels(&graph_).ok());
  }

  Node* FindNode(const std::string& name) {
    for (Node* node : graph_.op_nodes()) {
      if (node->name() == name) return node;
    }
    return nullptr;
  }

  // The node that makes the first input of `name`.
  Node* SourceOf(const std::string& name) {
    const tensorflow::Edge* edge = nullptr;
    EXPECT_TRUE(FindNode(name)->input_edge(0, &edge).ok());
    return edge->src();
  }

  Inputs WaitsOf(const Node& node) {
    Inputs waits;
    for (const tensorflow::Edge* edge : node.in_edges()) {
      if (edge->IsControlEdge() && edge->src()->IsOp()) waits.push_back(edge->src()->name());
    }
    std::sort(waits.begin(), waits.end());
    return waits;
  }

  GraphBuilder builder_;
  Graph graph_;
};

const Attrs kFloat = {{"T", DT_FLOAT}};

TEST_F(ReferenceReadsTest, OperatorsWithoutKernelsReadByAnIdentity) {
  builder_.Node("p", "Const", {}, {{"dtype", tensorflow::DT_BOOL}, {"value", tensorflow::Tensor(true)}});
  builder_.Node("switch", "Switch", {"v", "p"}, kFloat).Node("exit", "Exit", {"v"}, kFloat);
  ReadByKernels();
  for (const char* reader : {"switch", "exit"}) {
    const Node& source = *SourceOf(reader);
    EXPECT_EQ(source.type_string(), "Identity") << reader;
    EXPECT_EQ(SourceOf(source.name())->name(), "v") << reader;
  }
}

TEST_F(ReferenceReadsTest, KernelsAndOperatorsOnReferencesReadTheReference) {
  builder_.Node("p", "Const", {}, {{"dtype", tensorflow::DT_BOOL}, {"value", tensorflow::Tensor(true)}});
  builder_.Node("same", "Identity", {"v"}, kFloat).Node("switch", "RefSwitch", {"v", "p"}, kFloat);
  ReadByKernels();
  for (const char* reader : {"same", "switch"}) EXPECT_EQ(SourceOf(reader)->name(), "v") << reader;
  EXPECT_EQ(graph_.num_op_nodes(), 4);
}

TEST_F(ReferenceReadsTest, TheIdentityWaitsForWhatTheReaderWaitsFor) {
  builder_.Node("first", "NoOp").Node("exit", "Exit", {"v", "^first"}, kFloat);
  ReadByKernels();
  EXPECT_EQ(WaitsOf(*SourceOf("exit")), Inputs{"first"});
}

TEST_F(ReferenceReadsTest, TheIdentityWaitsForTheOtherArgumentsOfACall) {
  const auto call = [](int index) {
    return Attrs{{"T", DT_FLOAT}, {"function", "F"}, {"index", index}, {"call_id", 7}};
  };
  builder_.Node("other", "VariableV2", {}, {{"dtype", DT_FLOAT}, {"shape", tensorflow::TensorShape({})}});
  builder_.Node("x", "Identity", {"other"}, kFloat).Node("first", "NoOp");
  builder_.Node("call_0", kCallOp, {"v"}, call(0)).Node("call_1", kCallOp, {"x", "^first"}, call(1));
  ReadByKernels();
  EXPECT_EQ(WaitsOf(*SourceOf("call_0")), (Inputs{"first", "x"}));
  EXPECT_EQ(SourceOf("call_1")->name(), "x");
}

// A variable of a loop that starts with v, or with x, and goes on with the other of them.
struct LoopOfReference {
  const char* start;
  const char* next;
};

class LoopVariableTest : public ReferenceReadsTest, public ::testing::WithParamInterface<LoopOfReference> {};

TEST_P(LoopVariableTest, IsReadBeforeItEntersTheLoopOrItsNextIteration) {
  const auto [start, next] = GetParam();
  const auto by_reference = [](const std::string& value, const std::string& op) {
    return value == "v" ? "Ref" + op : op;
  };
  builder_.Node("x", "Const", {}, {{"dtype", DT_FLOAT}, {"value", tensorflow::Tensor(1.0F)}});
  builder_.Node("enter", by_reference(start, "Enter"), {start}, {{"T", DT_FLOAT}, {"frame_name", "loop"}});
  builder_.Node("next", by_reference(next, "NextIteration"), {next}, kFloat);
  builder_.Node("merge", "Merge", {"enter", "next"}, {{"T", DT_FLOAT}, {"N", 2}});
  ReadByKernels();
  Inputs found;
  for (const tensorflow::Edge* edge : FindNode("merge")->in_edges()) {
    const Node& source = *SourceOf(edge->src()->name());
    found.push_back(edge->src()->type_string() + " " + source.type_string());
  }
  std::sort(found.begin(), found.end());
  const auto expected = [](const char* value) { return *value == 'v' ? " Identity" : " Const"; };
  EXPECT_EQ(found, (Inputs{std::string("Enter") + expected(start), std::string("NextIteration") + expected(next)}));
  EXPECT_EQ(graph_.num_op_nodes(), 2 + 3 + (*start == 'v') + (*next == 'v'));
}

INSTANTIATE_TEST_SUITE_P(All, LoopVariableTest,
                         ::testing::Values(LoopOfReference{"v", "x"}, LoopOfReference{"x", "v"},
                                           LoopOfReference{"v", "v"}));

}  // namespace
}  // namespace tensorflow_recursion
