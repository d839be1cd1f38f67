// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/resolve_calls.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "cc/expand/call_nodes.h"
#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_VARIANT;
using tensorflow::Graph;
using tensorflow::GraphDef;
using tensorflow::Node;
using tensorflow::NodeDef;

Attrs CallAttrs(const std::string& forward, const Types& ignored) {
  Attrs attrs = GraphBuilder::CallAttrs("F", {kInt}, {kInt});
  attrs.emplace_back("forward", forward);
  attrs.emplace_back(kIgnoredTypesAttr, tensorflow::DataTypeSlice(ignored));
  return attrs;
}

// y = F(x) and a reader of its result.
GraphBuilder OneCall(const std::string& forward, const Inputs& inputs = {"x"}, const Types& ignored = {}) {
  GraphBuilder builder;
  builder.Const("x").Const("w").Const("first").Node("y", kInvokeOp, inputs, CallAttrs(forward, ignored));
  builder.Node("z", "Identity", {"y"}, {{"T", kInt}});
  return builder;
}

// The same, and a reader of the call's record.
GraphBuilder OneDifferentiatedCall(const Inputs& inputs = {"x"}, const Types& ignored = {}) {
  GraphBuilder builder = OneCall("F__forward1", inputs, ignored);
  builder.Node("reader", "Identity", {"y:1"}, {{"T", DT_VARIANT}});
  return builder;
}

GraphDef ToGraphDef(const Graph& graph) {
  GraphDef def;
  graph.ToGraphDef(&def);
  EXPECT_TRUE(Construct(def).ok()) << "a session could build the result";
  return def;
}

GraphDef Resolve(const GraphDef& def, const std::string& suffix = "") {
  const std::unique_ptr<Graph> graph = MakeGraph(def);
  const absl::Status status = ResolveCalls(suffix, graph.get());
  EXPECT_TRUE(status.ok()) << status;
  return ToGraphDef(*graph);
}

Types TypesIn(const NodeDef& node, const std::string& attr) {
  Types types;
  for (int type : node.attr().at(attr).list().type()) types.push_back(static_cast<tensorflow::DataType>(type));
  return types;
}

TEST(ResolveCallsTest, CallsWhoseRecordNobodyReadsStay) {
  const GraphDef resolved = Resolve(OneCall("F__forward1").graph(), "/forward");
  const NodeDef& call = *Find(resolved, "y");
  EXPECT_EQ(CalleeOf(call), "F");
  EXPECT_EQ(call.attr().at("forward").s(), "F__forward1");
  EXPECT_EQ(TypesIn(call, kResultTypesAttr), Types{kInt});
  EXPECT_EQ(InputsOf(resolved, "y"), Inputs{"x"});
  EXPECT_EQ(InputsOf(resolved, "z"), Inputs{"y"});
}

TEST(ResolveCallsTest, CallsWithoutAForwardFunctionStay) {
  EXPECT_EQ(CalleeOf(*Find(Resolve(OneCall("").graph(), "/forward"), "y")), "F");
}

TEST(ResolveCallsTest, CallsWhoseRecordIsReadCallWhatReturnsIt) {
  const GraphDef resolved = Resolve(OneDifferentiatedCall().graph());
  const NodeDef& call = *Find(resolved, "y");
  EXPECT_EQ(NodesOf(resolved, kInvokeOp).size(), 1);
  EXPECT_EQ(CalleeOf(call), "F__forward1");
  EXPECT_EQ(TypesIn(call, kArgumentTypesAttr), Types{kInt});
  EXPECT_EQ(TypesIn(call, kResultTypesAttr), (Types{kInt, DT_VARIANT})) << "the record is the last output";
  EXPECT_EQ(InputsOf(resolved, "y"), Inputs{"x"});
  EXPECT_EQ(InputsOf(resolved, "z"), Inputs{"y"});
  EXPECT_EQ(InputsOf(resolved, "reader"), Inputs{"y:1"});
}

TEST(ResolveCallsTest, TheirNameTakesTheSuffix) {
  const GraphDef resolved = Resolve(OneDifferentiatedCall().graph(), "/forward");
  EXPECT_EQ(Find(resolved, "y"), nullptr);
  EXPECT_EQ(CalleeOf(*Find(resolved, "y/forward")), "F__forward1");
  EXPECT_EQ(InputsOf(resolved, "z"), Inputs{"y/forward"});
  EXPECT_EQ(InputsOf(resolved, "reader"), Inputs{"y/forward:1"});
}

TEST(ResolveCallsTest, OnlyThoseCallsChangeWhoseRecordIsRead) {
  GraphBuilder builder = OneDifferentiatedCall();
  builder.Node("other", kInvokeOp, {"y"}, CallAttrs("F__forward1", {}));
  const GraphDef resolved = Resolve(builder.graph());
  EXPECT_EQ(CalleeOf(*Find(resolved, "y")), "F__forward1");
  EXPECT_EQ(CalleeOf(*Find(resolved, "other")), "F");
}

TEST(ResolveCallsTest, DoesNothingTheSecondTime) {
  const GraphDef once = Resolve(OneDifferentiatedCall({"x", "w"}, {kInt}).graph(), "/forward");
  const GraphDef twice = Resolve(once, "/forward");
  EXPECT_EQ(Find(twice, "y/forward")->DebugString(), Find(once, "y/forward")->DebugString());
  EXPECT_EQ(InputsOf(twice, "reader"), Inputs{"y/forward:1"});
}

TEST(ResolveCallsTest, DevicesStay) {
  GraphDef def = OneDifferentiatedCall().graph();
  def.mutable_node(3)->set_device("/device:CPU:1");
  std::unique_ptr<Graph> graph = MakeGraph(def);
  ASSERT_TRUE(ResolveCalls("", graph.get()).ok());
  EXPECT_EQ(FindNode(*graph, "y")->requested_device(), "/device:CPU:1");

  graph = MakeGraph(def);
  FindNode(*graph, "y")->set_assigned_device_name("/job:localhost/replica:0/task:0/device:CPU:1");
  ASSERT_TRUE(ResolveCalls("", graph.get()).ok());
  EXPECT_EQ(FindNode(*graph, "y")->assigned_device_name(), "/job:localhost/replica:0/task:0/device:CPU:1");
}

TEST(ResolveCallsTest, ControlEdgesStay) {
  GraphBuilder builder = OneDifferentiatedCall({"x", "^first"});
  builder.Node("after", "NoOp", {"^y"});
  const GraphDef resolved = Resolve(builder.graph(), "/forward");
  EXPECT_EQ(InputsOf(resolved, "y/forward"), (Inputs{"x", "^first"}));
  EXPECT_EQ(InputsOf(resolved, "after"), Inputs{"^y/forward"});
}

TEST(ResolveCallsTest, EveryReaderReadsTheNewCall) {
  GraphBuilder builder = OneDifferentiatedCall();
  builder.Node("sum", "AddV2", {"y", "y"}, {{"T", kInt}});
  builder.Node("reader_2", "Identity", {"y:1"}, {{"T", DT_VARIANT}});
  const GraphDef resolved = Resolve(builder.graph(), "/forward");
  EXPECT_EQ(InputsOf(resolved, "sum"), (Inputs{"y/forward", "y/forward"}));
  EXPECT_EQ(InputsOf(resolved, "reader_2"), Inputs{"y/forward:1"});
}

TEST(ResolveCallsTest, RecordsThatGradientCallsReadAreRead) {
  GraphBuilder builder = OneCall("F__forward1");
  builder.Call("dx", "F__backward1", {"y:1", "w"}, {DT_VARIANT, kInt}, {kInt});
  const GraphDef resolved = Resolve(builder.graph());
  EXPECT_EQ(CalleeOf(*Find(resolved, "y")), "F__forward1");
  EXPECT_EQ(InputsOf(resolved, "dx"), (Inputs{"y:1", "w"}));
}

TEST(ResolveCallsTest, TheRecordJoinsTheStatedShapes) {
  GraphDef stated = OneDifferentiatedCall().graph();
  auto* shapes = (*stated.mutable_node(3)->mutable_attr())[kOutputShapesAttr].mutable_list();
  shapes->add_shape()->add_dim()->set_size(3);
  const GraphDef resolved = Resolve(stated);
  const auto& list = Find(resolved, "y")->attr().at(kOutputShapesAttr).list();
  ASSERT_EQ(list.shape_size(), 2);
  EXPECT_EQ(list.shape(0).dim(0).size(), 3);
  EXPECT_EQ(list.shape(1).dim_size(), 0);
  EXPECT_FALSE(list.shape(1).unknown_rank()) << "a scalar";
}

TEST(ResolveCallsTest, ShapesThatAreNotStatedStayUnknown) {
  const GraphDef resolved = Resolve(OneDifferentiatedCall().graph());
  EXPECT_EQ(Find(resolved, "y")->attr().at(kOutputShapesAttr).list().shape_size(), 0);
}

TEST(ResolveCallsTest, IgnoredInputsAreDropped) {
  const GraphDef plain = Resolve(OneCall("F__forward1", {"x", "w", "w", "^first"}, {kInt, kInt}).graph(), "/forward");
  EXPECT_EQ(InputsOf(plain, "y"), (Inputs{"x", "^first"})) << "the name stays, as the function does";
  EXPECT_TRUE(TypesIn(*Find(plain, "y"), kIgnoredTypesAttr).empty());
  EXPECT_EQ(CalleeOf(*Find(plain, "y")), "F");

  const GraphDef forward = Resolve(OneDifferentiatedCall({"x", "w", "^first"}, {kInt}).graph(), "/forward");
  EXPECT_EQ(InputsOf(forward, "y/forward"), (Inputs{"x", "^first"}));
  EXPECT_TRUE(TypesIn(*Find(forward, "y/forward"), kIgnoredTypesAttr).empty());
}

TEST(ResolveCallsTest, RecordsThatABranchReturnsToNobodyAreNotRead) {
  GraphBuilder builder = OneCall("F__forward1");
  builder.Node("merge", "Merge", {"y:1", "y:1"}, {{"T", DT_VARIANT}, {"N", 2}});
  EXPECT_EQ(CalleeOf(*Find(Resolve(builder.graph()), "y")), "F");
  builder.Node("reader", "Identity", {"merge"}, {{"T", DT_VARIANT}});
  EXPECT_EQ(CalleeOf(*Find(Resolve(builder.graph()), "y")), "F__forward1");
}

TEST(ResolveCallsTest, RecordsThatABranchPacksForNobodyAreNotRead) {
  GraphBuilder builder = OneCall("F__forward1");
  builder.Node("packed", "OptionalFromValue", {"y:1"}, {{"Toutput_types", tensorflow::DataTypeSlice({DT_VARIANT})}});
  builder.Node("all", "IdentityN", {"y", "packed"}, {{"T", tensorflow::DataTypeSlice({kInt, DT_VARIANT})}});
  builder.Node("other", "Identity", {"all:0"}, {{"T", kInt}});
  EXPECT_EQ(CalleeOf(*Find(Resolve(builder.graph()), "y")), "F") << "the other output is what is read";
  builder.Node("reader", "Identity", {"all:1"}, {{"T", DT_VARIANT}});
  EXPECT_EQ(CalleeOf(*Find(Resolve(builder.graph()), "y")), "F__forward1");
}

TEST(ResolveCallsTest, NothingOfABodyIsFetched) {
  GraphBuilder builder = OneCall("F__forward1");
  builder.Node("reader", "Identity", {"y:1"}, {{"T", DT_VARIANT}});
  EXPECT_EQ(CalleeOf(*Find(Resolve(builder.graph()), "y")), "F__forward1");
  builder.Node("result", "_Retval", {"y"}, {{"T", kInt}, {"index", 0}});
  EXPECT_EQ(CalleeOf(*Find(Resolve(builder.graph()), "y")), "F");
}

TEST(ResolveCallsTest, NobodyFollowsRecordOf) {
  tensorflow::NameAttrList forward;
  forward.set_name("F__forward1");
  for (const GraphBuilder& builder : {OneCall(""), OneDifferentiatedCall()}) {
    GraphDef def = builder.graph();
    *(*def.mutable_node(3)->mutable_attr())[kRecordOfAttr].mutable_list()->add_func() = forward;
    const GraphDef resolved = Resolve(def);
    EXPECT_EQ(Find(resolved, "y")->attr().at(kRecordOfAttr).list().func_size(), 0);
  }
}

TEST(ResolveCallsTest, NamesTheNodeAndTheFunctionWhereForwardIsMissing) {
  GraphBuilder builder = OneCall("");
  builder.Node("reader", "Identity", {"y:1"}, {{"T", DT_VARIANT}});
  GraphDef def = builder.graph();
  (*def.mutable_node(3)->mutable_attr())["f"].mutable_func()->set_name("F__fn");
  const std::unique_ptr<Graph> graph = MakeGraph(def);
  const absl::Status status = ResolveCalls("", graph.get());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "Call 'y' of 'F': its record is read, but its attribute forward"))
      << status;
}

}  // namespace
}  // namespace tensorflow_recursion
