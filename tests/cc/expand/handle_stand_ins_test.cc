// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/handle_stand_ins.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_RESOURCE;

std::set<std::string> EdgesOf(const tensorflow::Graph& graph) {
  std::set<std::string> edges;
  for (const tensorflow::Edge* edge : graph.edges()) {
    edges.insert(absl::StrCat(edge->src()->name(), ":", edge->src_output(), " -> ", edge->dst()->name(), ":",
                              edge->dst_input()));
  }
  return edges;
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

TEST(HandleStandInsTest, StandInsTakeThePlaceOfHandlesAndGiveItBack) {
  std::unique_ptr<tensorflow::Graph> graph;
  ASSERT_TRUE(Construct(CallsWithHandles().graph(), &graph).ok());
  const std::set<std::string> before = EdgesOf(*graph);
  const int num_nodes = graph->num_nodes();
  ASSERT_TRUE(DetachHandles(graph.get()).ok());
  EXPECT_EQ(graph->num_nodes(), num_nodes + 4);
  for (const char* call : {"call", "other"}) {
    for (const tensorflow::Edge* edge : FindNode(*graph, call)->in_edges()) {
      EXPECT_NE(edge->src()->type_string(), "VarHandleOp") << edge->DebugString();
    }
  }
  EXPECT_TRUE(EdgesOf(*graph).count("v:0 -> read:0"));
  ASSERT_TRUE(AttachHandles(graph.get()).ok());
  EXPECT_EQ(EdgesOf(*graph), before);
  EXPECT_EQ(graph->num_nodes(), num_nodes);
}

TEST(HandleStandInsTest, CallsThatReturnAHandleKeepThoseTheyTake) {
  GraphBuilder builder;
  builder.Node("v", "VarHandleOp", {}, {{"dtype", kInt}, {"shape", tensorflow::TensorShape({})}});
  builder.Const("x").Call("pick", "F", {"x", "v"}, {kInt, DT_RESOURCE}, {kInt, DT_RESOURCE});
  std::unique_ptr<tensorflow::Graph> graph;
  ASSERT_TRUE(Construct(builder.graph(), &graph).ok());
  ASSERT_TRUE(DetachHandles(graph.get()).ok());
  EXPECT_TRUE(EdgesOf(*graph).count("v:0 -> pick:1"));
}

TEST(HandleStandInsTest, RecalledHandlesAreReadBesideTheirResources) {
  GraphBuilder builder;
  builder.Node("record", "Placeholder", {}, {{"dtype", tensorflow::DT_VARIANT}});
  builder.Node("recall", kRecallOp, {"record"},
               {{"T", tensorflow::DataTypeSlice{DT_RESOURCE, kInt}}, {"function", "F"}});
  builder.Node("read", "ReadVariableOp", {"recall"}, {{"dtype", kInt}});
  builder.Node("again", "ReadVariableOp", {"recall"}, {{"dtype", kInt}});
  builder.Node("value", "Identity", {"recall:1"}, {{"T", kInt}});
  std::unique_ptr<tensorflow::Graph> graph;
  ASSERT_TRUE(Construct(builder.graph(), &graph).ok());
  const std::set<std::string> before = EdgesOf(*graph);
  const std::string device = "/job:localhost/replica:0/task:0/device:CPU:1";
  ASSERT_TRUE(DetachRecalledHandles([&](const tensorflow::Edge&) { return device; }, graph.get()).ok());
  const tensorflow::Node* stand_in = nullptr;
  ASSERT_TRUE(FindNode(*graph, "read")->input_node(0, &stand_in).ok());
  EXPECT_EQ(stand_in->type_string(), "Placeholder");
  EXPECT_EQ(stand_in->assigned_device_name(), device);
  EXPECT_TRUE(EdgesOf(*graph).count(absl::StrCat(stand_in->name(), ":0 -> again:0")));
  EXPECT_TRUE(EdgesOf(*graph).count("recall:1 -> value:0"));
  ASSERT_TRUE(AttachHandles(graph.get()).ok());
  EXPECT_EQ(EdgesOf(*graph), before);
}

TEST(HandleStandInsTest, HandlesOfSeveralDevicesAreChosenFromBesideTheFirst) {
  const std::string elsewhere = "/job:localhost/replica:0/task:1/device:CPU:0";
  for (const std::string& second : {std::string(kDeviceA), std::string(kDeviceB), elsewhere, std::string()}) {
    GraphBuilder builder;
    for (const char* name : {"v", "w"}) {
      builder.Node(name, "VarHandleOp", {}, {{"dtype", kInt}, {"shape", tensorflow::TensorShape({})}});
    }
    builder.Node("choice", "Merge", {"v", "w"}, {{"T", DT_RESOURCE}, {"N", 2}});
    builder.Node("read", "ReadVariableOp", {"choice"}, {{"dtype", kInt}});
    std::unique_ptr<tensorflow::Graph> graph;
    ASSERT_TRUE(Construct(builder.graph(), &graph).ok());
    const std::set<std::string> before = EdgesOf(*graph);
    const auto device_of = [&](const tensorflow::Edge& edge) {
      return edge.dst_input() == 0 ? std::string(kDeviceA) : second;
    };
    ASSERT_TRUE(DetachChosenHandles(device_of, graph.get()).ok());
    const tensorflow::Node* source = nullptr;
    ASSERT_TRUE(FindNode(*graph, "choice")->input_node(1, &source).ok());
    EXPECT_EQ(source->type_string(), second == kDeviceB ? "Placeholder" : "VarHandleOp") << second;
    if (second == kDeviceB) {
      EXPECT_EQ(source->assigned_device_name(), kDeviceA);
    }
    ASSERT_TRUE(AttachHandles(graph.get()).ok());
    EXPECT_EQ(EdgesOf(*graph), before);
  }
}

TEST(HandleStandInsTest, AHandleThatIsGoneIsAnError) {
  std::unique_ptr<tensorflow::Graph> graph;
  ASSERT_TRUE(Construct(CallsWithHandles().graph(), &graph).ok());
  ASSERT_TRUE(DetachHandles(graph.get()).ok());
  graph->RemoveNode(FindNode(*graph, "w"));
  const absl::Status status = AttachHandles(graph.get());
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(absl::StrContains(status.message(), "'w:0'")) << status;
}

TEST(HandleStandInsTest, AnOutputThatTheHandlesNodeHasNotIsAnError) {
  for (const char* handle : {"x:7", "^x"}) {
    GraphBuilder builder;
    builder.Const("x").Node("stand_in", "Placeholder", {}, {{"dtype", DT_RESOURCE}, {"_recursion_handle", handle}});
    builder.Call("call", "F", {"stand_in"}, {DT_RESOURCE});
    std::unique_ptr<tensorflow::Graph> graph;
    ASSERT_TRUE(Construct(builder.graph(), &graph).ok());
    EXPECT_EQ(AttachHandles(graph.get()).code(), absl::StatusCode::kInternal) << handle;
  }
}

}  // namespace
}  // namespace tensorflow_recursion
