// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/wiring.h"

#include <gtest/gtest.h>

#include "tests/cc/expand/differentiated.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_VARIANT;
using tensorflow::FunctionDefHelper;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

// Records hold what someone reads.

TEST(WiringTest, OnlyWhatIsReadIsRetained) {
  const GraphDef expanded = Expand(Differentiated().graph(), {"g:0"});
  EXPECT_EQ(InputsOf(expanded, "F__forward1/retain"), (Inputs{"F__forward1/n", "F__forward1/call/return_1"}));
  EXPECT_EQ(TypesOf(expanded, "F__forward1/retain"), (Types{kInt, DT_VARIANT}));
  EXPECT_EQ(TypesOf(expanded, "F__backward1/recall"), (Types{kInt, DT_VARIANT}));
  EXPECT_EQ(InputsOf(expanded, "F__backward1/sum"), (Inputs{"F__backward1/inner/return_0", "F__backward1/recall:0"}));
  EXPECT_EQ(InputsOf(expanded, "F__backward1/inner/call_0"), Inputs{"F__backward1/recall:1"}) << "it was 2";
  EXPECT_EQ(InputsOf(expanded, "g/call_0"), Inputs{"y/return_1"});
  EXPECT_EQ(Find(expanded, "y/return_0"), nullptr) << "nobody reads the result";
  EXPECT_EQ(Find(expanded, "F__forward1/add"), nullptr) << "nor is it retained";
}

TEST(WiringTest, RecordsOfCallsAreKeptOnlyIfTheyAreRead) {
  const GraphDef expanded = Expand(Differentiated().graph(), {"g:1"});
  EXPECT_EQ(InputsOf(expanded, "F__forward1/retain"), Inputs{"F__forward1/add"});
  EXPECT_EQ(TypesOf(expanded, "F__backward1/recall"), Types{kInt});
  EXPECT_EQ(InputsOf(expanded, "F__backward1/product"),
            (Inputs{"F__backward1/dy", "F__backward1/recall:0", "^F__backward1/assert"}));
  EXPECT_TRUE(HasInput(expanded, "F__forward1/add", "F__forward1/call/return_0"));
}

TEST(WiringTest, ArgumentsOfAFunctionStayIfOnlyARecordWouldKeepThem) {
  GraphBuilder builder;
  builder.Node("x", "_Arg", {}, {{"T", kInt}, {"index", 0}}).Node("unread", "_Arg", {}, {{"T", kInt}, {"index", 1}});
  builder.Call("y", "F", {"x"}).Node("result", "_Retval", {"y"}, {{"T", kInt}, {"index", 0}});
  builder.Node("record", kRetainOp, {"unread"}, RecordAttrs("G", kInts)).Function(Endless("F", "F"));
  ExpandOptions options;
  options.is_cut = true;
  GraphDef expanded;
  ASSERT_TRUE(ExpandCalls(builder.graph(), options, &expanded).ok());
  EXPECT_EQ(Names(NodesOf(expanded, "_Arg")), (std::set<std::string>{"x", "unread"}));
  EXPECT_EQ(InputsOf(expanded, "record"), Inputs{}) << "nobody reads the record";
}

TEST(WiringTest, WhatAnyReadsIsRetained) {
  const GraphDef expanded = Expand(Differentiated().graph(), {"g:0", "g:1"});
  EXPECT_EQ(InputsOf(expanded, "F__forward1/retain"),
            (Inputs{"F__forward1/n", "F__forward1/add", "F__forward1/call/return_1"}));
  EXPECT_EQ(TypesOf(expanded, "F__backward1/recall"), (Types{kInt, kInt, DT_VARIANT}));
}

TEST(WiringTest, StatedShapesFollowTheirValues) {
  GraphDef graph = Differentiated().graph();
  NodeDef* recall = graph.mutable_library()->mutable_function(2)->mutable_node_def(0);
  ASSERT_EQ(recall->op(), kRecallOp);
  auto* shapes = (*recall->mutable_attr())["shapes"].mutable_list();
  for (int i = 0; i < 4; ++i) shapes->add_shape()->add_dim()->set_size(i + 10);
  const GraphDef expanded = Expand(graph, {"g:0"});
  const auto& kept = Find(expanded, "F__backward1/recall")->attr().at("shapes").list();
  ASSERT_EQ(kept.shape_size(), 2);
  EXPECT_EQ(kept.shape(0).dim(0).size(), 10);
  EXPECT_EQ(kept.shape(1).dim(0).size(), 12);
}

TEST(WiringTest, RecordsMayBeEmpty) {
  const GraphBuilder builder = DifferentiatedBy({RecallAll()}, "dy", "dy");
  const GraphDef expanded = Expand(builder.graph(), {"g:0"});
  EXPECT_EQ(InputsOf(expanded, "F__forward1/retain"), Inputs{"^F__forward1/recursion_frame_start"});
  EXPECT_TRUE(TypesOf(expanded, "F__forward1/retain").empty());
  EXPECT_EQ(Find(expanded, "F__forward1/call/call_0"), nullptr) << "there is nothing to compute";
}

// H passes on what it recalls of a record of G.
TEST(WiringTest, WhatARecordHoldsOfAnotherIsReadOnlyIfItIsRead) {
  const Types two = {kInt, kInt}, record = {DT_VARIANT};
  GraphBuilder builder;
  builder.Const("x").Call("g", "G", {"x"}, kInts, record).Call("h", "H", {"g"}, record, record);
  builder.Call("k", "K", {"h"}, record);
  builder.Function(FunctionDefHelper::Create(
      "G", {"n: int32"}, {"record: variant"}, {},
      {BodyConst("one"), MakeBodyNode("retain", kRetainOp, {"n", "one:output:0"}, RecordAttrs("G", two))},
      {{"record", "retain:record:0"}}));
  builder.Function(FunctionDefHelper::Create(
      "H", {"in: variant"}, {"out: variant"}, {},
      {MakeBodyNode("recall", kRecallOp, {"in"}, RecordAttrs("G", two)),
       MakeBodyNode("retain", kRetainOp, {"recall:values:0", "recall:values:1"}, RecordAttrs("H", two))},
      {{"out", "retain:record:0"}}));
  builder.Function(FunctionDefHelper::Create("K", {"record: variant"}, {"r: int32"}, {},
                                             {MakeBodyNode("recall", kRecallOp, {"record"}, RecordAttrs("H", two))},
                                             {{"r", "recall:values:1"}}));
  const GraphDef expanded = Expand(builder.graph(), {"k:0"});
  EXPECT_EQ(InputsOf(expanded, "K/r"), Inputs{"K/recall:0"});
  EXPECT_EQ(InputsOf(expanded, "H/retain"), Inputs{"H/recall:0"});
  EXPECT_EQ(InputsOf(expanded, "G/retain"), Inputs{"G/one"});
}

TEST(WiringTest, RecallsMayBeFetched) {
  GraphBuilder builder = Differentiated();
  builder.Node("recall", kRecallOp, {"y:1"}, RecordAttrs("F", {kInt, kInt, DT_VARIANT, kInt}));
  const GraphDef expanded = Expand(builder.graph(), {"recall:1"});
  EXPECT_EQ(TypesOf(expanded, "recall"), (Types{kInt, kInt, DT_VARIANT, kInt})) << "its outputs have the same places";
  EXPECT_EQ(InputsOf(expanded, "F__forward1/retain").size(), 4);
}

TEST(WiringTest, WithoutGradientsThePlainFunctionRuns) {
  const GraphDef expanded = Expand(Differentiated().graph(), {"y:0"});
  EXPECT_EQ(Names(NodesOf(expanded, kEntryOp)), std::set<std::string>{"F/n"});
  EXPECT_TRUE(NodesOf(expanded, kRetainOp).empty());
  EXPECT_EQ(Find(expanded, "y/return_1"), nullptr);
}

TEST(WiringTest, WithGradientsOnlyTheForwardFunctionRuns) {
  const GraphDef expanded = Expand(Differentiated().graph(), {"y:0", "g:0"});
  EXPECT_EQ(Names(NodesOf(expanded, kEntryOp)),
            (std::set<std::string>{"F__forward1/n", "F__backward1/record", "F__backward1/dy"}));
  EXPECT_EQ(InputsOf(expanded, "y"), Inputs{"y/return_0"});
}

TEST(WiringTest, OutputsThatNobodyNeedsCostNothing) {
  const GraphDef first = Expand(Differentiated().graph(), {"g:0"});
  EXPECT_EQ(Names(NodesOf(first, kResultOp)), (std::set<std::string>{"F__backward1/a", "F__forward1/record"}));
  EXPECT_EQ(Find(first, "F__backward1/product"), nullptr);
  EXPECT_EQ(Find(first, "F__backward1/assert"), nullptr) << "stateful, but nobody needs what waits for it";
  EXPECT_EQ(Find(first, "F__backward1/inner/return_1"), nullptr);

  const GraphDef second = Expand(Differentiated().graph(), {"g:1"});
  EXPECT_NE(Find(second, "F__backward1/assert"), nullptr);
  EXPECT_EQ(Find(second, "F__backward1/sum"), nullptr);
  EXPECT_EQ(Find(second, "F__backward1/inner/call_0"), nullptr) << "the recursion serves only the other output";
}

TEST(WiringTest, FetchingTheNodeTakesAllOutputs) {
  const GraphDef expanded = Expand(Differentiated().graph(), {"g"});
  EXPECT_EQ(InputsOf(expanded, "g"), (Inputs{"g/return_0", "g/return_1"}));
  EXPECT_EQ(Find(expanded, "F__backward1/recursion_done"), nullptr) << "gradients have no side effects of their own";
}

// Malformed calls.

TEST(WiringTest, ReportsWhereForwardIsMissing) {
  GraphBuilder builder;
  builder.Const("x").Call("y", "F", {"x"}).Function(Endless("F", "F"));
  builder.Node("z", "Identity", {"y:1"}, {{"T", DT_VARIANT}});
  ExpectFault(builder, {"z:0"}, "Call 'y' of 'F': its record is read, but its attribute forward names no function");
}

TEST(WiringTest, ReportsWhereForwardDoesNotFit) {
  GraphDef undefined = Differentiated().graph(), plain = Differentiated().graph();
  (*undefined.mutable_node(2)->mutable_attr())["forward"].set_s("Nowhere");
  (*plain.mutable_node(2)->mutable_attr())["forward"].set_s("F");
  ExpectFault(undefined, {"g:0"}, "Call of 'Nowhere' (node 'y'): the function is declared but has no definition");
  ExpectFault(plain, {"g:0"}, "Call of 'F' (node 'y'): the call has 2 outputs, the function returns 1");
}

}  // namespace
}  // namespace tensorflow_recursion
