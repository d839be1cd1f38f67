// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/placement.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/cc/expand/graphs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_RESOURCE;

tensorflow::Node* NodeIn(const tensorflow::Graph& graph, const std::string& name) {
  for (tensorflow::Node* node : graph.op_nodes()) {
    if (node->name() == name) return node;
  }
  ADD_FAILURE() << "no node " << name;
  return nullptr;
}

std::set<std::string> EdgesOf(const tensorflow::Graph& graph) {
  std::set<std::string> edges;
  for (const tensorflow::Edge* edge : graph.edges()) {
    edges.insert(absl::StrCat(edge->src()->name(), ":", edge->src_output(), " -> ", edge->dst()->name(), ":",
                              edge->dst_input()));
  }
  return edges;
}

GraphBuilder& Arg(GraphBuilder* body, const std::string& name, int index, tensorflow::DataType type = kInt) {
  return body->Node(name, "_Arg", {}, {{"T", type}, {"index", index}});
}

GraphBuilder& Ret(GraphBuilder* body, const std::string& input, int index) {
  return body->Node(absl::StrCat("ret_", index), "_Retval", {input}, {{"T", kInt}, {"index", index}});
}

// Functions' bodies with devices, as AlignBoundaries gets them.
class Bodies {
 public:
  Bodies& Add(const std::string& name, const GraphBuilder& body, const Devices& devices) {
    CalledFunction& function = program_.functions[name];
    EXPECT_TRUE(Construct(body.graph(), &function.graph).ok());
    Assign(devices, function.graph.get());
    program_.order.push_back(name);
    return *this;
  }
  void Align() { AlignBoundaries(&program_); }
  tensorflow::Node* Node(const std::string& function, const std::string& name) const {
    return NodeIn(*program_.functions.at(function).graph, name);
  }
  std::string Device(const std::string& function, const std::string& name) const {
    return DeviceOf(*Node(function, name));
  }

 private:
  CallProgram program_;
};

TEST(PlacementTest, AnAssignedDeviceCountsBeforeARequestedOne) {
  std::unique_ptr<tensorflow::Graph> graph;
  ASSERT_TRUE(Construct(GraphBuilder().Const("x").graph(), &graph).ok());
  tensorflow::Node* const node = NodeIn(*graph, "x");
  EXPECT_EQ(DeviceOf(*node), "");
  node->set_requested_device(kDeviceB);
  EXPECT_EQ(DeviceOf(*node), kDeviceB);
  node->set_assigned_device_name(kDeviceA);
  EXPECT_EQ(DeviceOf(*node), kDeviceA);
}

GraphBuilder CallsWithHandles() {
  GraphBuilder builder;
  for (const char* name : {"v", "w"}) {
    builder.Node(name, "VarHandleOp", {}, {{"dtype", kInt}, {"shape", tensorflow::TensorShape({})}});
  }
  builder.Const("x").Call("call", "F", {"v", "x", "w", "v", "^x"}, {DT_RESOURCE, kInt, DT_RESOURCE, DT_RESOURCE});
  builder.Call("other", "F", {"v"}, {DT_RESOURCE}).Node("read", "ReadVariableOp", {"v"}, {{"dtype", kInt}});
  return builder;
}

TEST(PlacementTest, StandInsTakeThePlaceOfHandlesAndGiveItBack) {
  std::unique_ptr<tensorflow::Graph> graph;
  ASSERT_TRUE(Construct(CallsWithHandles().graph(), &graph).ok());
  const std::set<std::string> before = EdgesOf(*graph);
  const int num_nodes = graph->num_nodes();
  ASSERT_TRUE(DetachHandles(graph.get()).ok());
  EXPECT_EQ(graph->num_nodes(), num_nodes + 4);
  for (const char* call : {"call", "other"}) {
    for (const tensorflow::Edge* edge : NodeIn(*graph, call)->in_edges()) {
      EXPECT_NE(edge->src()->type_string(), "VarHandleOp") << edge->DebugString();
    }
  }
  EXPECT_TRUE(EdgesOf(*graph).count("v:0 -> read:0"));
  ASSERT_TRUE(AttachHandles(graph.get()).ok());
  EXPECT_EQ(EdgesOf(*graph), before);
  EXPECT_EQ(graph->num_nodes(), num_nodes);
}

TEST(PlacementTest, CallsThatReturnAHandleKeepThoseTheyTake) {
  GraphBuilder builder;
  builder.Node("v", "VarHandleOp", {}, {{"dtype", kInt}, {"shape", tensorflow::TensorShape({})}});
  builder.Const("x").Call("pick", "F", {"x", "v"}, {kInt, DT_RESOURCE}, {kInt, DT_RESOURCE});
  std::unique_ptr<tensorflow::Graph> graph;
  ASSERT_TRUE(Construct(builder.graph(), &graph).ok());
  ASSERT_TRUE(DetachHandles(graph.get()).ok());
  EXPECT_TRUE(EdgesOf(*graph).count("v:0 -> pick:1"));
}

TEST(PlacementTest, AHandleThatIsGoneIsAnError) {
  std::unique_ptr<tensorflow::Graph> graph;
  ASSERT_TRUE(Construct(CallsWithHandles().graph(), &graph).ok());
  ASSERT_TRUE(DetachHandles(graph.get()).ok());
  graph->RemoveNode(NodeIn(*graph, "w"));
  const absl::Status status = AttachHandles(graph.get());
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(absl::StrContains(status.message(), "'w:0'")) << status;
}

TEST(PlacementTest, AnOutputThatTheHandlesNodeHasNotIsAnError) {
  for (const char* handle : {"x:7", "^x"}) {
    GraphBuilder builder;
    builder.Const("x").Node("stand_in", "Placeholder", {}, {{"dtype", DT_RESOURCE}, {"_recursion_handle", handle}});
    builder.Call("call", "F", {"stand_in"}, {DT_RESOURCE});
    std::unique_ptr<tensorflow::Graph> graph;
    ASSERT_TRUE(Construct(builder.graph(), &graph).ok());
    EXPECT_EQ(AttachHandles(graph.get()).code(), absl::StatusCode::kInternal) << handle;
  }
}

TEST(PlacementTest, AnArgumentMovesToItsReaders) {
  GraphBuilder body;
  Arg(&body, "n", 0).Node("neg", "Neg", {"n"}, {{"T", kInt}});
  Bodies bodies;
  bodies.Add("F", Ret(&body, "neg", 0), {{"", kDeviceA}, {"neg", kDeviceB}}).Align();
  EXPECT_EQ(bodies.Device("F", "n"), kDeviceB);
  EXPECT_EQ(bodies.Device("F", "neg"), kDeviceB);
  EXPECT_EQ(bodies.Device("F", "ret_0"), kDeviceB);
}

TEST(PlacementTest, ADeviceThatWasAskedForIsMovedToo) {
  GraphBuilder body;
  Arg(&body, "n", 0).Node("neg", "Neg", {"n"}, {{"T", kInt}});
  Bodies bodies;
  bodies.Add("F", Ret(&body, "neg", 0), {});
  bodies.Node("F", "n")->set_requested_device(kDeviceA);
  bodies.Node("F", "neg")->set_requested_device(kDeviceB);
  bodies.Align();
  EXPECT_EQ(bodies.Node("F", "n")->requested_device(), kDeviceB);
  EXPECT_EQ(bodies.Node("F", "n")->assigned_device_name(), "");
}

TEST(PlacementTest, MostReadersWinAndTiesStay) {
  GraphBuilder body;
  Arg(&body, "n", 0).Node("a", "Neg", {"n"}, {{"T", kInt}}).Node("b1", "Neg", {"n"}, {{"T", kInt}});
  Bodies tie;
  tie.Add("F", body, {{"", kDeviceB}, {"a", kDeviceA}}).Align();
  EXPECT_EQ(tie.Device("F", "n"), kDeviceB);
  Bodies elsewhere;  // one of the two that read it
  elsewhere.Add("F", body, {{"", kDeviceC}, {"a", kDeviceA}, {"b", kDeviceB}}).Align();
  EXPECT_EQ(elsewhere.Device("F", "n"), kDeviceA);
  body.Node("b2", "Neg", {"n"}, {{"T", kInt}});
  Bodies most;
  most.Add("F", body, {{"", kDeviceA}, {"b", kDeviceB}}).Align();
  EXPECT_EQ(most.Device("F", "n"), kDeviceB);
}

TEST(PlacementTest, ReadersBehindASwitchCountAndTheSwitchDoesNot) {
  GraphBuilder body;
  Arg(&body, "n", 0).Node("p", "Const", {}, {{"dtype", tensorflow::DT_BOOL}, {"value", tensorflow::Tensor(true)}});
  body.Node("switch", "Switch", {"n", "p"}, {{"T", kInt}}).Node("neg", "Neg", {"switch:1"}, {{"T", kInt}});
  Bodies bodies;
  bodies.Add("F", body, {{"", kDeviceA}, {"neg", kDeviceB}}).Align();
  EXPECT_EQ(bodies.Device("F", "n"), kDeviceB);
}

TEST(PlacementTest, ReadersInCalleesCount) {
  GraphBuilder callee;
  Arg(&callee, "m", 0).Node("neg", "Neg", {"m"}, {{"T", kInt}});
  Ret(&callee, "neg", 0);
  GraphBuilder caller;
  Arg(&caller, "n", 0).Call("call", "G", {"n"});
  Ret(&caller, "call", 0);
  Bodies bodies;
  bodies.Add("F", caller, {{"", kDeviceA}}).Add("G", callee, {{"", kDeviceA}, {"neg", kDeviceB}}).Align();
  EXPECT_EQ(bodies.Device("F", "n"), kDeviceB);
  EXPECT_EQ(bodies.Device("F", "ret_0"), kDeviceB);  // made in the callee
  EXPECT_EQ(bodies.Device("F", "call"), kDeviceA);
}

// F0(n) = F1(n), and so on; the last one computes.
TEST(PlacementTest, AChainOfFunctionsMayBeLongerThanTheStackIsDeep) {
  constexpr int kLast = 100000;
  Bodies bodies;
  for (int i = 0; i < kLast; ++i) {
    GraphBuilder body;
    Arg(&body, "n", 0).Call("call", absl::StrCat("F", i + 1), {"n"});
    bodies.Add(absl::StrCat("F", i), Ret(&body, "call", 0), {{"", kDeviceA}});
  }
  GraphBuilder last;
  Arg(&last, "n", 0).Node("neg", "Neg", {"n"}, {{"T", kInt}});
  bodies.Add(absl::StrCat("F", kLast), Ret(&last, "neg", 0), {{"", kDeviceB}}).Align();
  EXPECT_EQ(bodies.Device("F0", "n"), kDeviceB);
  EXPECT_EQ(bodies.Device("F0", "ret_0"), kDeviceB);
  EXPECT_EQ(bodies.Device("F0", "call"), kDeviceA);
}

TEST(PlacementTest, MutualFunctionsReturnWhatOneOfThemMakes) {
  GraphBuilder even, odd;
  Arg(&even, "n", 0).Call("call", "Odd", {"n"}).Node("neg", "Neg", {"n"}, {{"T", kInt}});
  Arg(&odd, "n", 0).Call("call", "Even", {"n"});
  Bodies bodies;
  bodies.Add("Even", Ret(&even, "neg", 0), {{"", kDeviceA}, {"neg", kDeviceB}});
  bodies.Add("Odd", Ret(&odd, "call", 0), {{"", kDeviceA}}).Align();
  EXPECT_EQ(bodies.Device("Even", "n"), kDeviceA);  // a tie
  for (const char* function : {"Even", "Odd"}) EXPECT_EQ(bodies.Device(function, "ret_0"), kDeviceB) << function;
}

TEST(PlacementTest, ARecursionAddsNoReadersToThoseOfTheBody) {
  GraphBuilder body;
  Arg(&body, "n", 0).Call("call", "F", {"n"}).Node("neg", "Neg", {"n"}, {{"T", kInt}});
  Bodies bodies;
  bodies.Add("F", Ret(&body, "call", 0), {{"", kDeviceA}, {"neg", kDeviceB}}).Align();
  EXPECT_EQ(bodies.Device("F", "n"), kDeviceB);
  EXPECT_EQ(bodies.Device("F", "ret_0"), kDeviceA);  // nobody makes it
}

TEST(PlacementTest, ArgumentsThatAreOnlyPassedOnStay) {
  GraphBuilder body;
  Arg(&body, "n", 0);
  Arg(&body, "unread", 1).Call("call", "F", {"n", "unread"}, {kInt, kInt}, {kInt, kInt});
  Ret(&body, "n", 0);
  Bodies bodies;
  bodies.Add("F", Ret(&body, "call:1", 1), {{"", kDeviceA}, {"call", kDeviceB}, {"ret", kDeviceB}}).Align();
  EXPECT_EQ(bodies.Device("F", "n"), kDeviceA);
  EXPECT_EQ(bodies.Device("F", "unread"), kDeviceA);
  EXPECT_EQ(bodies.Device("F", "ret_0"), kDeviceA);  // where the argument is
  EXPECT_EQ(bodies.Device("F", "ret_1"), kDeviceB);
}

TEST(PlacementTest, HandlesStay) {
  GraphBuilder body;
  Arg(&body, "v", 0, DT_RESOURCE).Node("read", "ReadVariableOp", {"v"}, {{"dtype", kInt}});
  Arg(&body, "record", 1, tensorflow::DT_VARIANT)
      .Node("copy", "ZerosLike", {"record"}, {{"T", tensorflow::DT_VARIANT}});
  Bodies bodies;
  bodies.Add("F", body, {{"", kDeviceA}, {"read", kDeviceB}, {"copy", kDeviceB}}).Align();
  EXPECT_EQ(bodies.Device("F", "v"), kDeviceA);
  EXPECT_EQ(bodies.Device("F", "record"), kDeviceA);
}

TEST(PlacementTest, CallsThatDoNotFitAreLeftAlone) {
  GraphBuilder callee;
  Arg(&callee, "m", 0).Node("neg", "Neg", {"m"}, {{"T", kInt}});
  GraphBuilder caller;
  Arg(&caller, "n", 0);
  Arg(&caller, "second", 1).Call("call", "G", {"n", "second"}, {kInt, kInt}, {kInt, kInt});
  Bodies bodies;
  bodies.Add("F", Ret(&caller, "call:1", 0), {{"", kDeviceA}}).Add("G", callee, {{"", kDeviceB}}).Align();
  EXPECT_EQ(bodies.Device("F", "n"), kDeviceB);
  EXPECT_EQ(bodies.Device("F", "second"), kDeviceA);
  EXPECT_EQ(bodies.Device("F", "ret_0"), kDeviceA);
}

}  // namespace
}  // namespace tensorflow_recursion
