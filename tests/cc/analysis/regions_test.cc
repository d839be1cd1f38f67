// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/regions.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {
namespace {

using Kind = RegionKind;

// A graph and its regions, by the nodes' names.
class Regions {
 public:
  explicit Regions(const StaticGraph& graph) {
    status = Construct(graph.graph(), &graph_);
    if (status.ok()) status = regions.Build(*graph_);
  }

  const tensorflow::Node* Node(const std::string& name) const {
    for (const tensorflow::Node* node : graph_->nodes()) {
      if (node->name() == name) return node;
    }
    ADD_FAILURE() << "no node " << name;
    return nullptr;
  }
  RegionId Of(const std::string& name) const { return regions.region(Node(name)); }
  RegionId OutputOf(const std::string& name) const { return regions.output_region(Node(name)); }
  bool IsReal(const std::string& src, const std::string& dst) const {
    for (const tensorflow::Edge* edge : Node(dst)->in_edges()) {
      if (edge->src() == Node(src)) return regions.IsReal(edge);
    }
    ADD_FAILURE() << "no edge from " << src << " to " << dst;
    return false;
  }

  absl::Status status;
  GraphRegions regions;

 private:
  std::unique_ptr<tensorflow::Graph> graph_;
};

void ExpectFault(const StaticGraph& graph, const std::vector<std::string>& texts) {
  const Regions built(graph);
  EXPECT_EQ(built.status.code(), absl::StatusCode::kInvalidArgument) << built.status;
  for (const std::string& text : texts) EXPECT_TRUE(absl::StrContains(built.status.message(), text)) << built.status;
}

// i = 0; while i < x: i = i + 1
void AddCountingLoop(StaticGraph* graph, const std::string& prefix, const std::string& x, const std::string& zero,
                     const std::string& loop) {
  auto in = [&](const char* node) { return prefix + node; };
  graph->Enter(in("enter_i"), zero, loop).Enter(in("enter_x"), x, loop, true);
  graph->Node(in("merge"), "Merge", {in("enter_i"), in("next")}, {{"T", kInt}, {"N", 2}});
  graph->Op(in("less"), "Less", {in("merge"), in("enter_x")}).Node(in("cond"), "LoopCond", {in("less")});
  graph->Op(in("switch"), "Switch", {in("merge"), in("cond")}).Op(in("exit"), "Exit", {in("switch")});
  graph->Op(in("body"), "Identity", {in("switch:1")}).Const(in("one"), 1, {"^" + in("body")});
  graph->Op(in("add"), "AddV2", {in("body"), in("one")}).Op(in("next"), "NextIteration", {in("add")});
}

TEST(GraphRegionsTest, PutsNodesOutsideAnyBodyIntoTheRoot) {
  StaticGraph graph;
  graph.Arg("x").Const("one", 1).Op("y", "AddV2", {"x", "one"}).Retval("y");
  const Regions built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  EXPECT_EQ(built.regions.regions().size(), 1);
  for (const char* node : {"x", "one", "y", "retval_0"}) EXPECT_EQ(built.Of(node), GraphRegions::kRoot) << node;
}

TEST(GraphRegionsTest, GivesEachFunctionARegion) {
  StaticGraph graph = FibGraph();
  AddFib(&graph, 4, "Other");
  const Regions built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  const RegionId fib = built.regions.FindFunction("Fib");
  EXPECT_EQ(built.regions.regions()[fib].kind, Kind::kFunction);
  EXPECT_EQ(built.regions.regions()[fib].name, "Fib");
  for (const char* node : {"Fib/frame_start", "Fib/n", "Fib/one", "Fib/f1/call_0", "Fib/f1/return_0", "Fib/result_0"}) {
    EXPECT_EQ(built.Of(node), fib) << node;
  }
  EXPECT_EQ(built.Of("Other/merge"), built.regions.FindFunction("Other"));
  EXPECT_NE(built.Of("Other/merge"), fib);
  EXPECT_EQ(built.Of("main/call_0"), GraphRegions::kRoot);
  EXPECT_EQ(built.Of("main/return_0"), GraphRegions::kRoot);
  EXPECT_EQ(built.regions.FindFunction("Undefined"), kNone);
}

TEST(GraphRegionsTest, PutsLoopsIntoRegionsOfTheirOwn) {
  StaticGraph graph;
  graph.Arg("x").Const("zero", 0);
  AddCountingLoop(&graph, "", "x", "zero", "loop");
  graph.Retval("exit");
  const Regions built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  const RegionId loop = built.regions.LoopOf(built.Node("enter_i"));
  EXPECT_EQ(built.regions.regions()[loop].kind, Kind::kLoop);
  EXPECT_EQ(built.regions.regions()[loop].name, "loop");
  EXPECT_EQ(built.regions.regions()[loop].parent, GraphRegions::kRoot);
  EXPECT_EQ(built.regions.LoopOf(built.Node("enter_x")), loop);
  for (const char* node : {"merge", "less", "switch", "body", "one", "next", "exit"}) {
    EXPECT_EQ(built.Of(node), loop) << node;
  }
  EXPECT_EQ(built.Of("enter_i"), GraphRegions::kRoot);
  EXPECT_EQ(built.OutputOf("enter_i"), loop);
  EXPECT_EQ(built.OutputOf("exit"), GraphRegions::kRoot);
  EXPECT_EQ(built.Of("retval_0"), GraphRegions::kRoot);
}

TEST(GraphRegionsTest, TellsLoopsOfOneNameInDifferentBodiesApart) {
  StaticGraph graph;
  for (const std::string function : {"F", "G"}) {
    graph.Function(function, {"x"}).Const(function + "/zero", 0, {"^" + function + "/frame_start"});
    AddCountingLoop(&graph, function + "/", function + "/x", function + "/zero", "loop");
    graph.Result(function, function + "/exit");
  }
  const Regions built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  const RegionId in_f = built.Of("F/merge");
  const RegionId in_g = built.Of("G/merge");
  EXPECT_NE(in_f, in_g);
  EXPECT_EQ(built.regions.regions()[in_f].parent, built.regions.FindFunction("F"));
  EXPECT_EQ(built.regions.regions()[in_g].parent, built.regions.FindFunction("G"));
}

TEST(GraphRegionsTest, FindsLoopsInsideLoops) {
  StaticGraph graph;
  graph.Arg("x").Const("zero", 0);
  AddCountingLoop(&graph, "", "x", "zero", "outer");
  AddCountingLoop(&graph, "in_", "body", "one", "inner");
  const Regions built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  EXPECT_EQ(built.regions.regions()[built.Of("in_merge")].parent, built.Of("merge"));
}

TEST(GraphRegionsTest, ReturnsReadTheirKeepAliveOnPaperOnly) {
  StaticGraph graph;
  graph.Arg("x").Node("keep_alive", kKeepAliveOp, {"^Fib/frame_start", "^Fib/result_0"});
  graph.Node("main/call_0", kCallOp, {"x"}, StaticGraph::SiteAttrs("Fib", 1, 0));
  graph.Return("main", "Fib", 1, 0, {"keep_alive", "^main/call_0"}).Retval("main/return_0");
  AddFib(&graph, 2);
  const Regions built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  EXPECT_EQ(built.Of("keep_alive"), kNone);
  EXPECT_EQ(built.Of("main/return_0"), GraphRegions::kRoot);
  EXPECT_FALSE(built.IsReal("keep_alive", "main/return_0"));
  EXPECT_FALSE(built.IsReal("Fib/result_0", "keep_alive"));
  EXPECT_TRUE(built.IsReal("main/call_0", "main/return_0"));
}

TEST(GraphRegionsTest, TokensOfKeepAlivesPassIntoLoopsOnPaperOnly) {
  StaticGraph graph;
  graph.Arg("x").Const("zero", 0).Node("keep_alive", kKeepAliveOp, {"^Fib/result_0"});
  AddCountingLoop(&graph, "", "x", "zero", "loop");
  graph.Enter("token", "keep_alive", "loop", true);
  graph.Node("site/call_0", kCallOp, {"body"}, StaticGraph::SiteAttrs("Fib", 1, 0));
  graph.Return("site", "Fib", 1, 0, {"token", "^site/call_0"});
  AddFib(&graph, 2);
  const Regions built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  EXPECT_EQ(built.Of("token"), kNone);
  EXPECT_EQ(built.Of("site/return_0"), built.Of("body"));
  EXPECT_FALSE(built.IsReal("token", "site/return_0"));
}

TEST(GraphRegionsTest, RefusesValuesThatPassBetweenFunctions) {
  StaticGraph graph;
  graph.Function("F", {"x"}).Function("G", {"y"}).Op("sum", "AddV2", {"F/x", "G/y"});
  ExpectFault(graph, {"'sum'", "by calls"});
}

TEST(GraphRegionsTest, RefusesValuesOfTheMainGraphInABody) {
  StaticGraph graph;
  graph.Arg("main").Function("F", {"x"}).Op("sum", "AddV2", {"F/x", "main"}).Result("F", "sum");
  ExpectFault(graph, {"'sum'", "'main'"});
}

TEST(GraphRegionsTest, RefusesControlEdgesBetweenRegions) {
  StaticGraph graph;
  graph.Function("F", {"x"}).Op("y", "Identity", {"F/x"}).Arg("main").Op("z", "Identity", {"main", "^y"});
  ExpectFault(graph, {"Node '", "by calls"});
}

TEST(GraphRegionsTest, RefusesValuesThatReachALoopWithoutEnter) {
  StaticGraph graph;
  graph.Arg("x").Const("zero", 0);
  AddCountingLoop(&graph, "", "x", "zero", "loop");
  graph.Op("mixed", "AddV2", {"body", "x"});
  ExpectFault(graph, {"'mixed'", "into loops by Enter"});
}

TEST(GraphRegionsTest, RefusesExitsOutsideAnyLoop) {
  StaticGraph graph;
  graph.Arg("x").Op("exit", "Exit", {"x"});
  ExpectFault(graph, {"'exit'", "outside any loop"});
}

// Partitions: bodies in pieces, with marks that say whose a node is.

Attrs Marked(Attrs attrs, const std::string& function) {
  attrs.emplace_back(kBodyAttr, function);
  return attrs;
}

// A receive or send, as partitioning adds them: without a mark.
StaticGraph& Transfer(StaticGraph* graph, const std::string& name, const std::string& op, const Inputs& inputs) {
  return graph->Node(name, op, inputs,
                     {{op == "_Send" ? "T" : "tensor_type", kInt},
                      {"tensor_name", name},
                      {"send_device", std::string(kDeviceA)},
                      {"send_device_incarnation", 1},
                      {"recv_device", std::string(kDeviceB)}});
}

TEST(GraphRegionsTest, PiecesOfABodyBelongToTheFunctionTheyAreMarkedWith) {
  StaticGraph graph;
  graph.Node("F/one", "Const", {}, Marked({{"dtype", kInt}, {"value", tensorflow::Tensor(1)}}, "F"));
  graph.Node("F/neg", "Neg", {"F/one"}, Marked({{"T", kInt}}, "F"));
  graph.Node("one", "Const", {}, Marked({{"dtype", kInt}, {"value", tensorflow::Tensor(1)}}, ""));
  const Regions built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  EXPECT_EQ(built.Of("F/one"), built.regions.FindFunction("F"));
  EXPECT_EQ(built.Of("F/neg"), built.regions.FindFunction("F"));
  EXPECT_EQ(built.Of("one"), GraphRegions::kRoot);
}

TEST(GraphRegionsTest, ReceivesBelongToWhomTheyAreConnectedWith) {
  StaticGraph graph;
  Transfer(&graph, "recv_f", "_Recv", {}).Op("copy", "Identity", {"recv_f"});  // as for a control edge
  graph.Node("F/one", "Const", {"^copy"}, Marked({{"dtype", kInt}, {"value", tensorflow::Tensor(1)}}, "F"));
  Transfer(&graph, "recv_main", "_Recv", {}).Node("neg", "Neg", {"recv_main"}, Marked({{"T", kInt}}, ""));
  Transfer(&graph, "recv_g", "_Recv", {}).Node("G/neg", "Neg", {"recv_g"}, Marked({{"T", kInt}}, "G"));
  Transfer(&graph, "send_g", "_Send", {"G/neg"}).Const("ctrl", 1, {"^F/one"});
  Transfer(&graph, "send_f", "_Send", {"ctrl"});
  const Regions built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  for (const char* node : {"recv_f", "copy", "ctrl", "send_f"}) {
    EXPECT_EQ(built.regions.FunctionOf(built.Node(node)), "F") << node;
  }
  for (const char* node : {"recv_g", "send_g"}) EXPECT_EQ(built.regions.FunctionOf(built.Node(node)), "G") << node;
  EXPECT_EQ(built.Of("recv_main"), GraphRegions::kRoot);
}

// The loop that partitioning adds to a device that takes no part in the condition: of its nodes none has a mark.
TEST(GraphRegionsTest, ControlLoopsBelongToWhomTheyAreConnectedWith) {
  StaticGraph graph;
  graph.Const("const", 0).Enter("_cloop_enter", "const", "loop");
  graph.Node("_cloop_merge", "Merge", {"_cloop_enter", "_cloop_next"}, {{"T", kInt}, {"N", 2}});
  Transfer(&graph, "recv_cond", "_Recv", {"^_cloop_merge"}).Const("p", true, {"^recv_cond"});
  graph.Op("_cloop_switch", "Switch", {"_cloop_merge", "p"});
  graph.Op("_cloop_next", "NextIteration", {"_cloop_switch:1"});
  Transfer(&graph, "recv", "_Recv", {"^_cloop_merge"}).Node("F/neg", "Neg", {"recv"}, Marked({{"T", kInt}}, "F"));
  const Regions built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  EXPECT_EQ(built.Of("const"), built.regions.FindFunction("F"));
  EXPECT_EQ(built.Of("_cloop_enter"), built.regions.FindFunction("F"));
  const RegionId loop = built.regions.LoopOf(built.Node("_cloop_enter"));
  for (const char* node : {"_cloop_merge", "recv_cond", "recv", "F/neg"}) EXPECT_EQ(built.Of(node), loop) << node;
}

TEST(GraphRegionsTest, RefusesMarksThatContradictTheInputs) {
  StaticGraph by_entry;
  by_entry.Function("F", {"x"}).Node("neg", "Neg", {"F/x"}, Marked({{"T", kInt}}, "G"));
  ExpectFault(by_entry, {"is marked as part of"});
  StaticGraph by_mark;
  by_mark.Node("one", "Const", {}, Marked({{"dtype", kInt}, {"value", tensorflow::Tensor(1)}}, "F"));
  by_mark.Node("neg", "Neg", {"one"}, Marked({{"T", kInt}}, ""));
  ExpectFault(by_mark, {"'neg'", "'F'"});
}

TEST(GraphRegionsTest, RefusesReceivesBetweenTwoFunctions) {
  StaticGraph graph;
  Transfer(&graph, "recv", "_Recv", {}).Node("F/neg", "Neg", {"recv"}, Marked({{"T", kInt}}, "F"));
  graph.Node("G/neg", "Neg", {"recv"}, Marked({{"T", kInt}}, "G"));
  ExpectFault(graph, {"is marked as part of"});
}

}  // namespace
}  // namespace tensorflow_recursion
