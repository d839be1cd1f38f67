// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/effects.h"

#include <gtest/gtest.h>

#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Graph;
using tensorflow::Node;

bool Waits(const Node& node, const std::string& op) {
  for (const tensorflow::Edge* edge : node.in_edges()) {
    if (edge->IsControlEdge() && edge->src()->type_string() == op) return true;
  }
  return false;
}

TEST(HasEffectTest, TellsEffectsFromReads) {
  GraphBuilder builder;
  const Attrs variable = {{"dtype", kInt}, {"shape", tensorflow::TensorShape()}};
  builder.Const("x").Node("handle", "VarHandleOp", {}, variable).Node("reference", "VariableV2", {}, variable);
  builder.Node("read", "ReadVariableOp", {"handle"}, {{"dtype", kInt}});
  builder.Node("write", "AssignAddVariableOp", {"handle", "x"}, {{"dtype", kInt}});
  builder.Node("assign", "Assign", {"reference", "x"}, {{"T", kInt}});
  builder.Node("random", "RandomUniformInt", {"shape", "x", "x"}, {{"T", kInt}, {"Tout", kInt}});
  builder.Node("shape", "Const", {}, {{"dtype", kInt}, {"value", tensorflow::Tensor(kInt, {0})}});
  builder.Call("call", "F", {"x"});
  const std::unique_ptr<Graph> graph = MakeGraph(builder);
  for (const char* effect : {"write", "assign"}) EXPECT_TRUE(HasEffect(*FindNode(*graph, effect))) << effect;
  for (const char* none : {"x", "handle", "reference", "read", "random", "call"}) {
    EXPECT_FALSE(HasEffect(*FindNode(*graph, none))) << none;
  }
}

// A function that hands its argument to an operator or a function `called`.
tensorflow::FunctionDef FunctionThatCalls(const std::string& name, const std::string& called,
                                          const tensorflow::NodeDef& node = {}) {
  tensorflow::FunctionDef function;
  function.mutable_signature()->set_name(name);
  *function.add_node_def() = node;
  function.mutable_node_def(0)->set_name("call");
  function.mutable_node_def(0)->set_op(called);
  return function;
}

TEST(ChangesInputTest, LooksIntoFunctionsThatAreNamedOrCalledByName) {
  tensorflow::FunctionLibraryDefinition library(tensorflow::OpRegistry::Global(), tensorflow::FunctionDefLibrary());
  tensorflow::NodeDef names_changes;
  (*names_changes.mutable_attr())["f"] = tensorflow::FunctionDefHelper::FunctionRef("Changes").proto;
  for (const auto& function : {FunctionThatCalls("Changes", "InplaceAdd"), FunctionThatCalls("CallsChanges", "Changes"),
                               FunctionThatCalls("NamesChanges", "PartitionedCall", names_changes),
                               FunctionThatCalls("Adds", "AddV2"), FunctionThatCalls("CallsItself", "CallsItself")}) {
    ASSERT_TRUE(library.AddFunctionDef(function).ok());
  }
  const auto changes_input = [&library](const std::string& function) {
    GraphBuilder builder;
    builder.Const("x").Node("call", "PartitionedCall", {"x"},
                            {{"f", tensorflow::FunctionDefHelper::FunctionRef(function)},
                             {"Tin", Types(1, kInt)},
                             {"Tout", Types(1, kInt)}});
    return ChangesInput(*FindNode(*MakeGraph(builder), "call"), library);
  };
  for (const char* changing : {"Changes", "CallsChanges", "NamesChanges"}) {
    EXPECT_TRUE(changes_input(changing)) << changing;
  }
  for (const char* other : {"Adds", "CallsItself", "Unknown"}) EXPECT_FALSE(changes_input(other)) << other;
}

TEST(CollectEffectsTest, ListsEffectsOutsideLoops) {
  GraphBuilder builder;
  builder.Node("print", "NoOp").Node("other", "NoOp");
  std::vector<std::string> effects;
  ASSERT_TRUE(
      CollectEffects(MakeGraph(builder).get(), [](const Node& n) { return n.name() == "print"; }, &effects).ok());
  EXPECT_EQ(effects, std::vector<std::string>{"print"});
}

void AddLoop(GraphBuilder* builder, const std::string& name, const std::string& init, const std::string& next) {
  const Attrs type = {{"T", kInt}};
  builder->Node(name + "/enter", "Enter", {init}, {{"T", kInt}, {"frame_name", name}});
  builder->Node(name + "/enter2", "Enter", {init}, {{"T", kInt}, {"frame_name", name}, {"is_constant", true}});
  builder->Node(name + "/merge", "Merge", {name + "/enter", name + "/iterate"}, {{"T", kInt}, {"N", 2}});
  builder->Node(name + "/less", "Less", {name + "/merge", name + "/enter2"}, type);
  builder->Node(name + "/cond", "LoopCond", {name + "/less"});
  builder->Node(name + "/switch", "Switch", {name + "/merge", name + "/cond"}, type);
  builder->Node(name + "/body", "Identity", {name + "/switch:1"}, type);
  builder->Node(name + "/iterate", "NextIteration", {next}, type);
  builder->Node(name + "/exit", "Exit", {name + "/switch"}, type);
}

TEST(CollectEffectsTest, LoopsWaitForTheirEffectsAndExitsStandForThem) {
  GraphBuilder builder;
  builder.Const("x");
  AddLoop(&builder, "outer", "x", "inner/exit");
  AddLoop(&builder, "inner", "outer/body", "inner/body");
  builder.Node("print", "NoOp", {"^inner/body"});
  const std::unique_ptr<Graph> graph = MakeGraph(builder);
  std::vector<std::string> effects;
  ASSERT_TRUE(CollectEffects(graph.get(), [](const Node& n) { return n.name() == "print"; }, &effects).ok());
  EXPECT_EQ(effects, std::vector<std::string>{"outer/exit"});
  EXPECT_TRUE(Waits(*FindNode(*graph, "inner/iterate"), "ControlTrigger"));
  EXPECT_TRUE(Waits(*FindNode(*graph, "outer/iterate"), "ControlTrigger"));
}

TEST(CollectEffectsTest, LeavesLoopsWithoutEffectsAlone) {
  GraphBuilder builder;
  builder.Const("x");
  AddLoop(&builder, "loop", "x", "loop/body");
  const std::unique_ptr<Graph> graph = MakeGraph(builder);
  const int nodes = graph->num_op_nodes();
  std::vector<std::string> effects;
  ASSERT_TRUE(CollectEffects(graph.get(), [](const Node&) { return false; }, &effects).ok());
  EXPECT_TRUE(effects.empty());
  EXPECT_EQ(graph->num_op_nodes(), nodes);
}

}  // namespace
}  // namespace tensorflow_recursion
