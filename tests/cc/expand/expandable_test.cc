// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/expandable.h"

#include <gtest/gtest.h>

#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionDef;
using tensorflow::FunctionDefHelper;
using tensorflow::FunctionLibraryDefinition;

FunctionLibraryDefinition LibraryOf(const GraphBuilder& builder) {
  return FunctionLibraryDefinition(tensorflow::OpRegistry::Global(), builder.graph().library());
}

FunctionDef Branching(const std::string& name, const std::string& then_branch, const std::string& else_branch) {
  return FunctionDefHelper::Create(name, {"n: int32"}, {"r: int32"}, {},
                                   {BodyIf("if", then_branch, else_branch), BodyTrue("p")}, {{"r", "if:output:0"}});
}

FunctionDef Same(const std::string& name) {
  return FunctionDefHelper::Create(name, {"n: int32"}, {"r: int32"}, {}, {}, {{"r", "n"}});
}

TEST(FindExpandableTest, NamesTheBranchesOfAConditional) {
  GraphBuilder builder;
  builder.Function(Branching("f", "then", "else")).Function(Same("then")).Function(Same("else"));
  const Expandable found = FindExpandable(builder.graph().library().function(0).node_def(0), LibraryOf(builder));
  EXPECT_EQ(found.kind, Expansion::kControlFlow);
  EXPECT_EQ(found.functions, (std::vector<std::string>{"then", "else"}));
}

TEST(FindExpandableTest, LeavesBranchesThatDoNotFitToTheirKernel) {
  GraphBuilder builder;
  builder.Function(Branching("f", "then", "else")).Function(Same("then"));
  builder.Function(FunctionDefHelper::Create("else", {"n: int32"}, {}, {}, {}, {}));
  const Expandable found = FindExpandable(builder.graph().library().function(0).node_def(0), LibraryOf(builder));
  EXPECT_EQ(found.kind, Expansion::kNone);
}

TEST(FindExpandableTest, LeavesPredicatesThatAreNotBoolToTheirKernel) {
  GraphBuilder builder;
  builder.Function(Branching("f", "then", "then")).Function(Same("then"));
  tensorflow::NodeDef node = builder.graph().library().function(0).node_def(0);
  (*node.mutable_attr())["Tcond"].set_type(kInt);
  EXPECT_EQ(FindExpandable(node, LibraryOf(builder)).kind, Expansion::kNone);
}

TEST(FindExpandableTest, LeavesMissingBranchesToTheirKernel) {
  GraphBuilder builder;
  builder.Function(Branching("f", "then", "else"));
  const Expandable found = FindExpandable(builder.graph().library().function(0).node_def(0), LibraryOf(builder));
  EXPECT_EQ(found.kind, Expansion::kNone);
}

TEST(FunctionsWithInvokeTest, SeesCallsInsideBranches) {
  GraphBuilder builder;
  builder.Function(Branching("outer", "inner", "leaf")).Function(Branching("inner", "calls", "leaf"));
  builder.Function(Endless("calls", "calls")).Function(Same("leaf"));
  EXPECT_EQ(FunctionsWithInvoke(builder.graph().library(), LibraryOf(builder)),
            (std::unordered_set<std::string>{"outer", "inner", "calls"}));
}

FunctionDef Marked(FunctionDef function) {
  for (tensorflow::NodeDef& node : *function.mutable_node_def()) {
    if (node.op() == "If") (*node.mutable_attr())["_lower_using_switch_merge"].set_b(true);
  }
  return function;
}

TEST(FindEndlessLoweringTest, FindsABranchThatContainsItself) {
  GraphBuilder builder;
  builder.Function(Marked(Branching("f", "g", "leaf"))).Function(Marked(Branching("g", "f", "leaf")));
  builder.Function(Same("leaf"));
  EXPECT_EQ(FindEndlessLowering("f", LibraryOf(builder)), "f");
  EXPECT_EQ(FindEndlessLowering("leaf", LibraryOf(builder)), "");
}

TEST(FindEndlessLoweringTest, IgnoresBranchesThatStayFunctions) {
  GraphBuilder builder;
  builder.Function(Branching("f", "f", "leaf")).Function(Same("leaf"));
  EXPECT_EQ(FindEndlessLowering("f", LibraryOf(builder)), "");
}

TEST(FindEndlessLoweringTest, RecursionThroughCallsEnds) {
  GraphBuilder builder;
  builder.Function(Marked(Branching("f", "g", "g"))).Function(Endless("g", "f"));
  EXPECT_EQ(FindEndlessLowering("f", LibraryOf(builder)), "");
}

}  // namespace
}  // namespace tensorflow_recursion
