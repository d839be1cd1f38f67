// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/place_records.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::DT_VARIANT;

constexpr char kGpu[] = "/job:localhost/replica:0/task:0/device:GPU:0";

// A call's record goes through an operator that is pinned to device B, and colocated with the call, into a Retain.
std::unique_ptr<tensorflow::Graph> BodyWithRecord() {
  GraphBuilder builder;
  builder.Const("n").Call("call", "G", {"n"}, {kInt}, {kInt, DT_VARIANT});
  builder.Node("hand", "Identity", {"call:1"}, {{"T", DT_VARIANT}, {"_class", Inputs{"loc:@call"}}});
  builder.Node("value", "Identity", {"call"}, {{"T", kInt}});
  builder.Node("retain", kRetainOp, {"hand"}, {{"T", tensorflow::DataTypeSlice{DT_VARIANT}}, {"function", "F"}});
  std::unique_ptr<tensorflow::Graph> graph;
  EXPECT_TRUE(Construct(builder.graph(), &graph).ok());
  for (const char* node : {"hand", "value"}) FindNode(*graph, node)->set_requested_device(kDeviceB);
  return graph;
}

std::string AssignedTo(const tensorflow::Graph& graph, const std::string& node) {
  return FindNode(graph, node)->assigned_device_name();
}

TEST(PlaceRecordsTest, RecordsStayOnTheirDeviceWhateverIsPinned) {
  const std::unique_ptr<tensorflow::Graph> graph = BodyWithRecord();
  PlaceRecords(kDeviceA, graph.get());
  EXPECT_EQ(AssignedTo(*graph, "retain"), kDeviceA);
  EXPECT_EQ(AssignedTo(*graph, "hand"), kDeviceA);
  EXPECT_EQ(AssignedTo(*graph, "value"), "");
  EXPECT_EQ(AssignedTo(*graph, "call"), "");
  EXPECT_EQ(FindNode(*graph, "hand")->attrs().Find("_class"), nullptr);
}

// A list that `pinned` makes (its tests pin it) and `free` hands on; the body has records, too.
GraphBuilder BodyWithList() {
  GraphBuilder builder;
  builder.Const("shape").Const("size");
  builder.Node("pinned", "TensorListReserve", {"shape", "size"}, {{"element_dtype", DT_FLOAT}, {"shape_type", kInt}});
  builder.Node("free", "Identity", {"pinned"}, {{"T", DT_VARIANT}});
  builder.Node("retain", kRetainOp, {"free"}, {{"T", tensorflow::DataTypeSlice{DT_VARIANT}}, {"function", "F"}});
  return builder;
}

TEST(PlaceRecordsTest, PinnedOperatorsOfListsStay) {
  std::unique_ptr<tensorflow::Graph> graph;
  ASSERT_TRUE(Construct(BodyWithList().graph(), &graph).ok());
  FindNode(*graph, "pinned")->set_requested_device(kDeviceB);
  PlaceRecords(kDeviceA, graph.get());
  EXPECT_EQ(AssignedTo(*graph, "pinned"), "");
  EXPECT_EQ(AssignedTo(*graph, "free"), kDeviceA);
}

TEST(PlaceRecordsTest, ListsGoToTheHostAsAWholeWhereTheDeviceHasNoZerosOfLists) {
  GraphBuilder builder = BodyWithList();
  builder.Node("zeros", "ZerosLike", {"free"}, {{"T", DT_VARIANT}});
  std::unique_ptr<tensorflow::Graph> graph;
  ASSERT_TRUE(Construct(builder.graph(), &graph).ok());
  PlaceRecords(kGpu, graph.get());
  for (const char* node : {"pinned", "free", "zeros"}) EXPECT_EQ(AssignedTo(*graph, node), kDeviceA) << node;
}

TEST(PlaceRecordsTest, BodiesWithoutRecordsStayAsTheyAre) {
  GraphBuilder builder;
  builder.Node("hand", "Placeholder", {}, {{"dtype", DT_VARIANT}});
  std::unique_ptr<tensorflow::Graph> graph;
  ASSERT_TRUE(Construct(builder.graph(), &graph).ok());
  PlaceRecords(kDeviceA, graph.get());
  EXPECT_EQ(AssignedTo(*graph, "hand"), "");
}

}  // namespace
}  // namespace tensorflow_recursion
