// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/spread_calls.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {
namespace {

// A graph on its devices and what SpreadCalls made of it.
class Spread {
 public:
  Spread(const StaticGraph& graph, const Devices& devices) {
    status = Construct(graph.graph(), &graph_);
    if (!status.ok()) return;
    Assign(devices, graph_.get());
    before = Text();
    status = SpreadCalls(graph_.get());
  }

  // Without what nodes say of their owners, which they always do afterwards.
  std::string Text() const {
    tensorflow::GraphDef def;
    graph_->ToGraphDef(&def);
    for (tensorflow::NodeDef& node : *def.mutable_node()) node.mutable_attr()->erase(kBodyAttr);
    std::string text = def.DebugString();
    for (const tensorflow::Node* node : graph_->op_nodes()) absl::StrAppend(&text, node->assigned_device_name(), "\n");
    return text;
  }
  const tensorflow::Node* Node(const std::string& name) const { return FindNode(*graph_, name); }
  const std::string& Device(const std::string& name) const { return Node(name)->assigned_device_name(); }
  std::string Body(const tensorflow::Node* node) const {
    std::string body = "unmarked";
    (void)tensorflow::GetNodeAttr(node->attrs(), kBodyAttr, &body);
    return body;
  }
  // The nodes of one operator and function by device, the first of each.
  std::map<std::string, const tensorflow::Node*> ByDevice(const char* op, const std::string& function) const {
    std::map<std::string, const tensorflow::Node*> nodes;
    for (const tensorflow::Node* node : graph_->op_nodes()) {
      std::string of;
      if (node->type_string() != op || !tensorflow::GetNodeAttr(node->attrs(), kFunctionAttr, &of).ok()) continue;
      if (of != function) continue;
      nodes.emplace(node->assigned_device_name(), node);
    }
    return nodes;
  }
  std::set<std::string> DevicesOf(const char* op, const std::string& function) const {
    std::set<std::string> devices;
    for (const auto& [device, node] : ByDevice(op, function)) devices.insert(device);
    return devices;
  }
  int Count(const char* op) const {
    int count = 0;
    for (const tensorflow::Node* node : graph_->op_nodes()) count += node->type_string() == op;
    return count;
  }
  static std::set<std::string> ControlsOf(const tensorflow::Node* node) {
    std::set<std::string> controls;
    for (const tensorflow::Edge* edge : node->in_edges()) {
      if (edge->IsControlEdge() && edge->src()->IsOp()) controls.insert(edge->src()->name());
    }
    return controls;
  }
  const tensorflow::Graph& graph() const { return *graph_; }

  absl::Status status;
  std::string before;

 private:
  std::unique_ptr<tensorflow::Graph> graph_;
};

using Strings = std::set<std::string>;

// A call in the main graph, as the transformation makes it: its Returns read the token of a KeepAlive.
StaticGraph& KeptAliveCall(StaticGraph* graph, const std::string& site, const std::string& function, int call_id,
                           const Inputs& inputs, const std::string& token) {
  graph->Call(site, function, call_id, inputs, 0);
  Inputs waits = {token};
  for (size_t i = 0; i < inputs.size(); ++i) waits.push_back(absl::StrCat("^", site, "/call_", i));
  return graph->Return(site, function, call_id, 0, waits);
}

// F(x, y) = -x + y * y + 1, called once by the main graph.
StaticGraph OneStaticCall() {
  StaticGraph graph;
  graph.Function("F", {"x", "y"}).Const("F/one", 1, {"^F/frame_start"}).Op("F/neg", "Neg", {"F/x"});
  graph.Op("F/square", "Square", {"F/y"}).Op("F/sum", "AddV2", {"F/neg", "F/square"});
  graph.Op("F/more", "AddV2", {"F/sum", "F/one"}).Result("F", "F/more");
  graph.Node("keep_alive", kKeepAliveOp, {"^F/frame_start", "^F/result_0"}).Arg("a").Arg("b", 1);
  return KeptAliveCall(&graph, "main", "F", 7, {"a", "b"}, "keep_alive").Retval("main/return_0");
}

void ExpectFault(const StaticGraph& graph, const Devices& devices, const std::string& text) {
  const Spread spread(graph, devices);
  EXPECT_EQ(spread.status.code(), absl::StatusCode::kInvalidArgument) << spread.status;
  EXPECT_TRUE(absl::StrContains(spread.status.message(), text)) << spread.status;
}

// What is left alone.

TEST(SpreadCallsTest, LeavesBodiesOnOneDeviceAlone) {
  const Spread spread(OneStaticCall(), {{"", kDeviceA}});
  ASSERT_TRUE(spread.status.ok()) << spread.status;
  EXPECT_EQ(spread.Text(), spread.before);
}

TEST(SpreadCallsTest, LeavesBodiesOnOneDeviceAloneIfTheMainGraphIsOnOthers) {
  const Spread spread(OneStaticCall(), {{"", kDeviceA}, {"a", kDeviceB}, {"keep_alive", kDeviceA}});
  ASSERT_TRUE(spread.status.ok()) << spread.status;
  EXPECT_EQ(spread.Text(), spread.before);
}

TEST(SpreadCallsTest, LeavesGraphsWithoutCallsAlone) {
  StaticGraph graph;
  graph.Arg("x").Op("neg", "Neg", {"x"}).Retval("neg");
  const Spread spread(graph, {{"", kDeviceA}, {"neg", kDeviceB}});
  ASSERT_TRUE(spread.status.ok()) << spread.status;
  EXPECT_EQ(spread.Text(), spread.before);
}

// Who has frames.

TEST(SpreadCallsTest, EveryDeviceOfABodyHasAFrameStart) {
  const Spread spread(OneStaticCall(), {{"", kDeviceA}, {"F/square", kDeviceB}, {"F/one", kDeviceC}});
  ASSERT_TRUE(spread.status.ok()) << spread.status;
  const auto frame_starts = spread.ByDevice(kFrameStartOp, "F");
  EXPECT_EQ(frame_starts.size(), 3);
  EXPECT_EQ(spread.Count(kFrameStartOp), 3);
  for (const auto& [device, frame_start] : frame_starts) {
    int64_t max_depth = 0;
    EXPECT_TRUE(tensorflow::GetNodeAttr(frame_start->attrs(), kMaxDepthAttr, &max_depth).ok());
    EXPECT_EQ(max_depth, 1000);
    EXPECT_EQ(spread.Body(frame_start), "F");
  }
  EXPECT_EQ(Spread::ControlsOf(spread.Node("F/one")), Strings{frame_starts.at(kDeviceC)->name()});
}

TEST(SpreadCallsTest, WhatIsBesideTheFirstFrameStartStaysThere) {
  const Spread spread(OneStaticCall(), {{"", kDeviceA}, {"F/square", kDeviceB}});
  ASSERT_TRUE(spread.status.ok()) << spread.status;
  EXPECT_EQ(Spread::ControlsOf(spread.Node("F/one")), Strings{"F/frame_start"});
}

TEST(SpreadCallsTest, CallersHaveFramesWhereverTheirCalleesHave) {
  StaticGraph graph = OneStaticCall();
  graph.Function("G", {"x"}).Call("G/f", "F", 8, {"G/x", "G/x"}).Result("G", "G/f/return_0");
  graph.Function("H", {"x"}).Call("H/g", "G", 9, {"H/x"}).Result("H", "H/g/return_0");
  graph.Function("Apart", {"x"}).Op("Apart/neg", "Neg", {"Apart/x"}).Result("Apart", "Apart/neg");
  graph.Call("h", "H", 10, {"a"}).Call("apart", "Apart", 11, {"h/return_0"}).Retval("apart/return_0", 1);
  const Spread spread(graph, {{"", kDeviceA}, {"F/square", kDeviceB}});
  ASSERT_TRUE(spread.status.ok()) << spread.status;
  for (const char* function : {"F", "G", "H"}) {
    EXPECT_EQ(spread.DevicesOf(kFrameStartOp, function), (Strings{kDeviceA, kDeviceB})) << function;
    EXPECT_EQ(spread.DevicesOf(kJoinCallOp, function).count(kDeviceB), 1) << function;
  }
  EXPECT_EQ(spread.DevicesOf(kFrameStartOp, "Apart"), Strings{kDeviceA});
  EXPECT_TRUE(spread.DevicesOf(kAnnounceCallOp, "Apart").empty());
}

TEST(SpreadCallsTest, RecursionsHaveFramesOnTheDevicesOfTheWholeCycle) {
  StaticGraph graph;
  graph.Arg("n").Call("main", "Even", 1, {"n"}).Retval("main/return_0");
  graph.Function("Even", {"n"}).Call("Even/odd", "Odd", 2, {"Even/n"}).Result("Even", "Even/odd/return_0");
  graph.Function("Odd", {"n"}).Call("Odd/even", "Even", 3, {"Odd/n"}).Result("Odd", "Odd/even/return_0");
  const Spread spread(graph, {{"", kDeviceA}, {"Odd/", kDeviceB}});
  ASSERT_TRUE(spread.status.ok()) << spread.status;
  for (const char* function : {"Even", "Odd"}) {
    EXPECT_EQ(spread.DevicesOf(kFrameStartOp, function), (Strings{kDeviceA, kDeviceB})) << function;
  }
  EXPECT_EQ(spread.Device("Even/odd/call_0"), kDeviceB);
  EXPECT_EQ(spread.Device("Even/odd/return_0"), kDeviceB);
  EXPECT_EQ(spread.DevicesOf(kAnnounceCallOp, "Odd"), Strings{kDeviceB});
  EXPECT_EQ(spread.DevicesOf(kJoinCallOp, "Odd"), Strings{kDeviceA});
}

// Whether a call lives.

TEST(SpreadCallsTest, TheDeviceWithMostArgumentsTellsTheOthers) {
  StaticGraph graph;
  graph.Function("F", {"x", "y", "z"}).Op("F/neg", "Neg", {"F/x"}).Op("F/sum", "AddV2", {"F/y", "F/z"});
  graph.Op("F/all", "AddV2", {"F/neg", "F/sum"}).Result("F", "F/all").Arg("a");
  graph.Call("main", "F", 7, {"a", "a", "a"}).Retval("main/return_0");
  const Spread spread(graph, {{"", kDeviceA}, {"F/y", kDeviceB}, {"F/z", kDeviceB}, {"F/all", kDeviceC}});
  ASSERT_TRUE(spread.status.ok()) << spread.status;
  const auto announcements = spread.ByDevice(kAnnounceCallOp, "F");
  ASSERT_EQ(announcements.size(), 1);
  const tensorflow::Node* const decider = announcements.at(kDeviceB);
  EXPECT_EQ(Spread::ControlsOf(decider), (Strings{"main/call_1", "main/call_2"}));
  EXPECT_EQ(spread.Body(decider), "");
  const auto joins = spread.ByDevice(kJoinCallOp, "F");
  EXPECT_EQ(spread.DevicesOf(kJoinCallOp, "F"), (Strings{kDeviceA, kDeviceC}));
  for (const auto& [device, join] : joins) {
    const tensorflow::Edge* edge = nullptr;
    ASSERT_TRUE(join->input_edge(0, &edge).ok());
    EXPECT_EQ(edge->src(), decider);
    int64_t id = 0;
    EXPECT_TRUE(tensorflow::GetNodeAttr(join->attrs(), kCallIdAttr, &id).ok());
    EXPECT_EQ(id, 7);
    EXPECT_EQ(spread.Body(join), "");
  }
}

TEST(SpreadCallsTest, OfDevicesWithAsManyArgumentsTheFirstOnesDecides) {
  for (const char* first : {kDeviceA, kDeviceB}) {
    const char* const second = first == kDeviceA ? kDeviceB : kDeviceA;
    const Spread spread(OneStaticCall(), {{"", kDeviceA}, {"F/x", first}, {"F/y", second}});
    ASSERT_TRUE(spread.status.ok()) << spread.status;
    EXPECT_EQ(spread.DevicesOf(kAnnounceCallOp, "F"), Strings{first});
  }
}

TEST(SpreadCallsTest, EveryCallIsAnnouncedForItself) {
  StaticGraph graph = OneStaticCall();
  graph.Function("G", {"x"}).Call("G/f", "F", 8, {"G/x", "G/x"}).Result("G", "G/f/return_0");
  graph.Call("g", "G", 9, {"a"}).Retval("g/return_0", 1);
  const Spread spread(graph, {{"", kDeviceA}, {"F/square", kDeviceB}});
  ASSERT_TRUE(spread.status.ok()) << spread.status;
  std::map<int64_t, std::string> bodies;  // of the JoinCalls, by call
  for (const tensorflow::Node* node : spread.graph().op_nodes()) {
    if (node->type_string() != kJoinCallOp) continue;
    int64_t id = 0;
    EXPECT_TRUE(tensorflow::GetNodeAttr(node->attrs(), kCallIdAttr, &id).ok());
    bodies[id] = spread.Body(node);
  }
  EXPECT_EQ(bodies, (std::map<int64_t, std::string>{{7, ""}, {8, "G"}, {9, ""}}));
  EXPECT_EQ(spread.Count(kAnnounceCallOp), 3);
}

// Pruning takes Entries that nobody reads.
TEST(SpreadCallsTest, ABodyWithoutEntriesIsOpenedWhereItsFrameStartIs) {
  StaticGraph graph;
  graph.Function("F", {}).Const("F/one", 1, {"^F/frame_start"}).Op("F/neg", "Neg", {"F/one"}).Result("F", "F/neg");
  graph.Function("G", {"x"}).Op("G/neg", "Neg", {"G/x"}).Result("G", "G/neg").Arg("a");
  graph.Call("f", "F", 1, {"a"}).Call("g", "G", 2, {"f/return_0"}).Retval("g/return_0");
  const Spread spread(graph, {{"", kDeviceA}, {"F/", kDeviceB}});
  ASSERT_TRUE(spread.status.ok()) << spread.status;
  EXPECT_EQ(spread.Device("f/call_0"), kDeviceB);
  EXPECT_EQ(spread.Device("f/return_0"), kDeviceB);
  EXPECT_EQ(Spread::ControlsOf(spread.Node("f/return_0")), Strings{"f/call_0"});
}

// Whose a node is, and what goes.

TEST(SpreadCallsTest, CallsGoWithEntriesAndReturnsWithResults) {
  const Spread spread(OneStaticCall(), {{"", kDeviceA},
                                        {"F/y", kDeviceB},
                                        {"F/result_0", kDeviceC},
                                        {"main/call_0", kDeviceC},
                                        {"main/return_0", kDeviceB}});
  ASSERT_TRUE(spread.status.ok()) << spread.status;
  EXPECT_EQ(spread.Device("main/call_0"), kDeviceA);
  EXPECT_EQ(spread.Device("main/call_1"), kDeviceB);
  EXPECT_EQ(spread.Device("main/return_0"), kDeviceC);
}

TEST(SpreadCallsTest, EveryNodeIsMarked) {
  for (const char* other : {kDeviceA, kDeviceB}) {
    const Spread spread(OneStaticCall(), {{"", kDeviceA}, {"F/square", other}});
    ASSERT_TRUE(spread.status.ok()) << spread.status;
    for (const tensorflow::Node* node : spread.graph().op_nodes()) {
      const bool is_in_body = node->name().compare(0, 2, "F/") == 0;
      const bool is_for_pruning = node->type_string() == kKeepAliveOp;
      EXPECT_EQ(spread.Body(node), is_for_pruning ? "unmarked" : is_in_body ? "F" : "") << node->name();
    }
  }
}

// The transformation marks its nodes, stock optimizers add others.
TEST(SpreadCallsTest, WhatIsNotMarkedBelongsToWhomItIsConnectedWith) {
  StaticGraph graph;
  const Attrs in_f = {{"T", kInt}, {kBodyAttr, "F"}};
  graph.Function("F", {"x"}).Node("F/neg", "Neg", {"F/x"}, in_f).Op("added", "Neg", {"F/neg"}).Result("F", "added");
  graph.Arg("a").Call("main", "F", 1, {"a"}).Retval("main/return_0");
  const Spread spread(graph, {{"", kDeviceA}});
  ASSERT_TRUE(spread.status.ok()) << spread.status;
  EXPECT_EQ(spread.Body(spread.Node("F/neg")), "F");
  EXPECT_EQ(spread.Body(spread.Node("added")), "F");
  EXPECT_EQ(spread.Body(spread.Node("main/call_0")), "");
}

TEST(SpreadCallsTest, KeepAlivesGo) {
  const Spread spread(OneStaticCall(), {{"", kDeviceA}, {"F/square", kDeviceB}});
  ASSERT_TRUE(spread.status.ok()) << spread.status;
  EXPECT_EQ(spread.Count(kKeepAliveOp), 0);
  const tensorflow::Node* const bare = spread.Node("main/return_0");
  EXPECT_EQ(bare->num_inputs(), 0);
  EXPECT_EQ(Spread::ControlsOf(bare), (Strings{"main/call_0", "main/call_1"}));
  const tensorflow::Edge* edge = nullptr;
  ASSERT_TRUE(spread.Node("retval_0")->input_edge(0, &edge).ok());
  EXPECT_EQ(edge->src(), bare);
}

TEST(SpreadCallsTest, TokensOfKeepAlivesInLoopsGo) {
  StaticGraph graph = OneStaticCall();
  graph.Enter("enter", "a", "loop").Enter("outer", "keep_alive", "loop", true).Enter("token", "outer", "inner", true);
  graph.Op("copy", "Identity", {"outer"});
  KeptAliveCall(&graph, "site", "F", 8, {"enter", "enter"}, "copy");
  const Spread spread(graph, {{"", kDeviceA}, {"F/square", kDeviceB}});
  ASSERT_TRUE(spread.status.ok()) << spread.status;
  for (const char* name : {"keep_alive", "outer", "token", "copy"}) EXPECT_EQ(spread.Node(name), nullptr) << name;
  EXPECT_EQ(spread.Node("site/return_0")->num_inputs(), 0);
  EXPECT_EQ(spread.Count(kJoinCallOp), 2);  // of both calls
}

// Else the token would be sent, and the executor would take what sends it for a part of the program.
TEST(SpreadCallsTest, TokensThatCrossDevicesGoEvenIfTheBodiesAreOnOne) {
  const Devices everywhere[] = {{{"", kDeviceA}, {"keep_alive", kDeviceB}},
                                {{"", kDeviceA}, {"outer", kDeviceB}, {"enter", kDeviceB}}};
  for (const Devices& devices : everywhere) {
    StaticGraph graph = OneStaticCall();
    graph.Enter("enter", "a", "loop").Enter("outer", "keep_alive", "loop", true);
    KeptAliveCall(&graph, "site", "F", 8, {"enter", "enter"}, "outer");
    const Spread spread(graph, devices);
    ASSERT_TRUE(spread.status.ok()) << spread.status;
    EXPECT_EQ(spread.Count(kKeepAliveOp), 0);
    EXPECT_EQ(spread.Node("outer"), nullptr);
    EXPECT_EQ(spread.Node("site/return_0")->num_inputs(), 0);
    EXPECT_EQ(spread.Count(kJoinCallOp), 0);
    EXPECT_EQ(spread.Body(spread.Node("F/neg")), "F");
  }
}

TEST(SpreadCallsTest, NoOpsBetweenBodiesAndKeepAlivesGo) {
  StaticGraph graph = OneStaticCall();
  graph.Node("GroupCrossDeviceControlEdges_0/keep_alive2", "NoOp", {"^F/frame_start", "^F/square"});
  graph.Node("keep_alive2", kKeepAliveOp, {"^GroupCrossDeviceControlEdges_0/keep_alive2"});
  graph.Node("F/own", "NoOp", {"^F/square"}).Op("F/after", "Neg", {"F/x", "^F/own"});
  KeptAliveCall(&graph, "other", "F", 8, {"a", "b"}, "keep_alive2").Retval("other/return_0", 1);
  const Spread spread(graph, {{"", kDeviceA}, {"F/square", kDeviceB}});
  ASSERT_TRUE(spread.status.ok()) << spread.status;
  EXPECT_EQ(spread.Node("GroupCrossDeviceControlEdges_0/keep_alive2"), nullptr);
  EXPECT_NE(spread.Node("F/own"), nullptr);
}

TEST(SpreadCallsTest, ReturnsWaitForJoinsInThePlaceOfCallsOfOtherDevices) {
  const Spread spread(OneStaticCall(), {{"", kDeviceA}, {"F/y", kDeviceB}, {"F/result_0", kDeviceB}});
  ASSERT_TRUE(spread.status.ok()) << spread.status;
  const tensorflow::Node* const join = spread.ByDevice(kJoinCallOp, "F").at(kDeviceB);
  EXPECT_EQ(Spread::ControlsOf(spread.Node("main/return_0")), (Strings{"main/call_1", join->name()}));
}

TEST(SpreadCallsTest, OtherControlEdgesBetweenDevicesStay) {
  StaticGraph graph = OneStaticCall();
  graph.Op("F/after", "Neg", {"F/x", "^F/square"}).Op("after", "Neg", {"a", "^main/return_0"});
  const Spread spread(graph, {{"", kDeviceA}, {"F/square", kDeviceB}, {"after", kDeviceB}});
  ASSERT_TRUE(spread.status.ok()) << spread.status;
  EXPECT_EQ(Spread::ControlsOf(spread.Node("F/after")), Strings{"F/square"});
  EXPECT_EQ(Spread::ControlsOf(spread.Node("after")), Strings{"main/return_0"});
}

// Malformed graphs.

TEST(SpreadCallsTest, ABodyWithoutAFrameStartIsAnError) {
  StaticGraph graph;
  graph.Entry("F", "x", 0).Op("F/neg", "Neg", {"F/x"}).Result("F", "F/neg").Arg("a").Call("main", "F", 1, {"a"});
  graph.Retval("main/return_0");
  ExpectFault(graph, {{"", kDeviceA}, {"F/neg", kDeviceB}}, "no FrameStart");
}

TEST(SpreadCallsTest, ACallOfAFunctionWithoutABodyIsAnError) {
  StaticGraph graph = OneStaticCall();
  graph.Call("other", "Undefined", 9, {"a"}).Retval("other/return_0", 1);
  ExpectFault(graph, {{"", kDeviceA}, {"F/square", kDeviceB}}, "'Undefined'");
}

TEST(SpreadCallsTest, AReturnThatNoResultFeedsIsAnError) {
  for (const Devices& devices : {Devices{{"", kDeviceA}}, Devices{{"", kDeviceA}, {"F/square", kDeviceB}}}) {
    StaticGraph graph = OneStaticCall();
    graph.Return("main", "F", 7, 5, {"keep_alive"}).Retval("main/return_5", 1);
    ExpectFault(graph, devices, "Node 'main/return_5': function 'F' has no output 5 in this graph");
  }
}

TEST(SpreadCallsTest, ATokenThatIsReadAsAValueIsAnError) {
  StaticGraph graph = OneStaticCall();
  graph.Op("neg", "Neg", {"keep_alive"}).Retval("neg", 1);
  ExpectFault(graph, {{"", kDeviceA}, {"F/square", kDeviceB}}, "'neg'");
}

TEST(SpreadCallsTest, ValuesBetweenBodiesAreAnError) {
  StaticGraph graph = OneStaticCall();
  graph.Op("sum", "AddV2", {"F/x", "a"}).Retval("sum", 1);
  ExpectFault(graph, {{"", kDeviceA}, {"F/square", kDeviceB}}, "by calls");
}

// The executor says what is wrong with these; here they only must not do harm.
TEST(SpreadCallsTest, ForgedSitesAreLeftToTheExecutor) {
  const Devices devices = {{"", kDeviceA}, {"F/square", kDeviceB}};
  StaticGraph without_call = OneStaticCall();
  without_call.Return("forged", "F", 99, 0, {"keep_alive"}).Retval("forged/return_0", 1);
  StaticGraph shared_id = OneStaticCall();
  shared_id.Function("G", {"x"}).Result("G", "G/x").Call("forged", "G", 7, {"a"}).Retval("forged/return_0", 1);
  StaticGraph beyond_the_last = OneStaticCall();
  beyond_the_last.Node("main/call_9", kCallOp, {"a"}, StaticGraph::SiteAttrs("F", 7, 9));
  beyond_the_last.Return("main", "F", 7, 5, {"keep_alive"}).Retval("main/return_5", 1);
  StaticGraph without_slash = OneStaticCall();
  without_slash.Node("bare", kCallOp, {"a"}, StaticGraph::SiteAttrs("F", 8, 0));
  without_slash.Node("bare2", kCallOp, {"a"}, StaticGraph::SiteAttrs("F", 8, 1));
  for (const StaticGraph* graph : {&without_call, &shared_id, &beyond_the_last, &without_slash}) {
    const Spread spread(*graph, devices);
    EXPECT_TRUE(spread.status.ok() || absl::IsInvalidArgument(spread.status)) << spread.status;
  }
}

}  // namespace
}  // namespace tensorflow_recursion
