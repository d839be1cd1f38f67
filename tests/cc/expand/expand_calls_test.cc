// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/expand_calls.h"

#include <gtest/gtest.h>

#include "tests/cc/expand/expansion.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionDef;
using tensorflow::FunctionDefHelper;
using tensorflow::GraphDef;

// The graph as a whole.

TEST(ExpandCallsTest, CopiesAGraphWithoutCalls) {
  GraphBuilder builder;
  builder.Const("x").Node("y", "Identity", {"x"}, {{"T", kInt}});
  EXPECT_FALSE(HasExpandableCalls(builder.graph()));
  EXPECT_EQ(Expand(builder.graph(), {"y:0"}).DebugString(), builder.graph().DebugString());
}

TEST(ExpandCallsTest, LeavesTheBodyOfAFunctionAlone) {
  GraphBuilder builder;
  builder.Node("x", "_Arg", {}, {{"T", kInt}, {"index", 0}}).Call("y", "F", {"x"}).Function(Endless("F", "F"));
  EXPECT_FALSE(HasExpandableCalls(builder.graph()));
}

TEST(ExpandCallsTest, LeavesAnExpandedGraphAlone) {
  const GraphDef once = Expand(CallAndReader().graph(), {"z:0"});
  EXPECT_FALSE(HasExpandableCalls(once));
}

TEST(ExpandCallsTest, IsDeterministic) {
  const GraphDef graph = CallAndReader().graph();
  EXPECT_EQ(Expand(graph, {"z:0"}).DebugString(), Expand(graph, {"z:0"}).DebugString());
}

TEST(ExpandCallsTest, KeepsOnlyFunctionsThatTheGraphStillNeeds) {
  EXPECT_EQ(Expand(CallAndReader().graph(), {"z:0"}).library().function_size(), 0);
  GraphBuilder builder = CallAndReader();
  builder.Function(Endless("Other", "Inner")).Function(Endless("Inner", "Inner"));
  builder.Node("user", "Identity", {"z"}, {{"T", kInt}, {"_runs", FunctionDefHelper::FunctionRef("Other")}});
  EXPECT_EQ(Expand(builder.graph(), {"user:0"}).library().function_size(), 2);
}

TEST(ExpandCallsTest, PutsEachBodyInOnce) {
  GraphBuilder builder = CallAndReader();
  builder.Call("y2", "F", {"y"});
  const GraphDef expanded = Expand(builder.graph(), {"y2:0"});
  EXPECT_EQ(NodesOf(expanded, kEntryOp).size(), 1);
  EXPECT_EQ(NodesOf(expanded, kFrameStartOp).size(), 1);
  EXPECT_EQ(Names(NodesOf(expanded, kResultOp)), (std::set<std::string>{"F/r"}));
  EXPECT_TRUE(NodesOf(expanded, kInvokeOp).empty());
}

TEST(ExpandCallsTest, TransformsOnlyWhatIsFetched) {
  GraphBuilder builder = CallAndReader();
  builder.Call("other", "G", {"x"}).Function(Endless("G", "Undefined"));
  const GraphDef expanded = Expand(builder.graph(), {"z:0"});
  EXPECT_EQ(Find(expanded, "other"), nullptr);
  EXPECT_EQ(Find(expanded, "G/n"), nullptr);
}

TEST(ExpandCallsTest, TransformsEverythingWithoutFetches) {
  GraphBuilder builder = CallAndReader();
  builder.Call("other", "G", {"x"}).Function(Endless("G", "G"));
  const GraphDef expanded = Expand(builder.graph(), {});
  EXPECT_EQ(Names(NodesOf(expanded, kEntryOp)), (std::set<std::string>{"F/n", "G/n"}));
  EXPECT_NE(Find(expanded, "other"), nullptr);
}

// Control flow.

TEST(ExpandCallsTest, ControlFlowOfBodiesBecomesSwitchesAndMerges) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"});
  builder.Function(FunctionDefHelper::Create("F", {"n: int32"}, {"r: int32"}, {},
                                             {BodyTrue("p"), BodyIf("if", "Then", "Else")}, {{"r", "if:output:0"}}));
  builder.Function(Endless("Then", "F"));
  builder.Function(FunctionDefHelper::Create("Else", {"n: int32"}, {"r: int32"}, {}, {}, {{"r", "n"}}));
  const GraphDef expanded = Expand(builder.graph(), {"y:0"});
  EXPECT_TRUE(NodesOf(expanded, "If").empty());
  EXPECT_FALSE(NodesOf(expanded, "Switch").empty());
  EXPECT_EQ(NodesOf(expanded, kCallOp).size(), 2) << "one in the main graph, one in the branch";
}

TEST(ExpandCallsTest, ControlFlowOfTheMainGraphIsExpandedWhereItHoldsCalls) {
  const Types types = {kInt};
  GraphBuilder builder;
  builder.Node("p", "Placeholder", {}, {{"dtype", tensorflow::DT_BOOL}});
  builder.Const("x").Node("if", "If", {"p", "x"},
                          {{"Tcond", tensorflow::DT_BOOL},
                           {"Tin", tensorflow::DataTypeSlice(types)},
                           {"Tout", tensorflow::DataTypeSlice(types)},
                           {"then_branch", FunctionDefHelper::FunctionRef("F")},
                           {"else_branch", FunctionDefHelper::FunctionRef("F")}});
  builder.Function(Endless("F", "F"));
  EXPECT_TRUE(HasExpandableCalls(builder.graph()));
  const GraphDef expanded = Expand(builder.graph(), {"if:0"});
  EXPECT_TRUE(NodesOf(expanded, "If").empty());
  EXPECT_EQ(NodesOf(expanded, kCallOp).size(), 3) << "one in each branch, one in the body";
  EXPECT_NE(Find(expanded, "if"), nullptr) << "the fetched name stays";
}

// Bad input.

TEST(ExpandCallsTest, ReportsAFunctionWithoutDefinition) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"}).Function(Endless("F", "Nowhere"));
  ExpectFault(builder, {"y:0"}, "Call of 'Nowhere' (node 'call'): the function is declared but has no definition");
}

TEST(ExpandCallsTest, ReportsFunctionsThatContainThemselvesWithoutACall) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"});
  builder.Function(FunctionDefHelper::Create("F", {"n: int32"}, {"r: int32"}, {},
                                             {MakeBodyNode("again", "F", {"n"}, {})}, {{"r", "again:r:0"}}));
  ExpectFault(builder, {"y:0"}, "contains itself");
}

TEST(ExpandCallsTest, ReportsBrokenBodies) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"});
  FunctionDef function = Endless("F", "F");
  function.mutable_node_def(0)->set_op("NoSuchOperator");
  ExpectFault(builder.Function(function), {"y:0"}, "Function 'F': ");
}

TEST(ExpandCallsTest, ReportsBrokenGraphs) {
  GraphBuilder missing = CallAndReader();
  ExpectFault(missing.Node("w", "Identity", {"nowhere"}, {{"T", kInt}}), {"w:0"}, "input 'nowhere'");
  GraphBuilder twice = CallAndReader();
  ExpectFault(twice.Const("x"), {"z:0"}, "appears twice");
  GraphBuilder type = CallAndReader();
  ExpectFault(type.Node("w", "Identity", {"y"}, {{"T", tensorflow::DT_FLOAT}}), {"w:0"}, "w");
}

TEST(ExpandCallsTest, ReportsWhatTensorFlowWouldDieOf) {
  GraphBuilder inputs = CallAndReader();
  ExpectFault(inputs.Node("w", "Identity", {"y", "y"}, {{"T", kInt}}), {"w:0"}, "w");
  GraphBuilder length = CallAndReader();
  ExpectFault(length.Node("w", "AddN", {"y"}, {{"T", kInt}, {"N", int64_t{1} << 31}}), {"w:0"},
              "attribute N is 2147483648");
  GraphBuilder value;
  FunctionDef valueless = Endless("F", "F");
  valueless.mutable_node_def(0)->mutable_attr()->erase("value");
  ExpectFault(value.Const("x").Call("y", "F", {"x"}).Function(valueless), {"y:0"}, "missing attr 'value'");
  GraphBuilder branch;  // marked for lowering, although a branch has too few outputs
  FunctionDef function = FunctionDefHelper::Create("F", {"n: int32"}, {"r: int32"}, {},
                                                   {BodyTrue("p"), BodyIf("if", "B", "B")}, {{"r", "if:output:0"}});
  (*function.mutable_node_def(1)->mutable_attr())["_lower_using_switch_merge"].set_b(true);
  branch.Const("x").Call("y", "F", {"x"}).Function(function);
  branch.Function(FunctionDefHelper::Create("B", {"n: int32"}, {}, {}, {}, {}));
  EXPECT_EQ(NodesOf(Expand(branch.graph(), {"y:0"}), "If").size(), 1) << "its kernel will complain";
}

TEST(ExpandCallsTest, ReportsUnknownFetches) {
  ExpectFault(CallAndReader(), {"nowhere:0"}, "Fetch 'nowhere:0' is not in the graph");
  ExpectFault(CallAndReader(), {"y:1"}, "Fetch 'y:1': the call has no such output");
}

TEST(ExpandCallsTest, ReportsABodyBesideCallsOfItsFunction) {
  GraphBuilder builder = CallAndReader();
  builder.Node("F/n", kEntryOp, {}, {{"T", kInt}, {"function", "F"}, {"index", 0}});
  ExpectFault(builder, {"z:0"}, "Function 'F': the graph holds calls of it and its body");
}

}  // namespace
}  // namespace tensorflow_recursion
