// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/copies.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "cc/expand/name_table.h"
#include "tests/cc/expand/differentiated.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_RESOURCE;
using tensorflow::DT_VARIANT;
using tensorflow::FunctionDef;
using tensorflow::FunctionDefHelper;
using tensorflow::GraphDef;
using tensorflow::NodeDef;

const Types kIntAndHandle = {kInt, DT_RESOURCE};

// Puts nodes on devices, by name.
GraphDef On(const Devices& devices, GraphDef graph) {
  for (NodeDef& node : *graph.mutable_node()) {
    const auto device = devices.find(node.name());
    if (device != devices.end()) node.set_device(device->second);
  }
  return graph;
}

BodyNode BodyRead(const std::string& name, const std::string& handle) {
  return MakeBodyNode(name, "ReadVariableOp", {handle}, {{"dtype", kInt}});
}

// Variables v and w, and x.
GraphBuilder Variables() {
  GraphBuilder builder;
  for (const char* name : {"v", "w"}) {
    builder.Node(name, "VarHandleOp", {}, {{"dtype", kInt}, {"shape", tensorflow::TensorShape({})}});
  }
  return builder.Const("x");
}

// F(n, h) = F(n, h) + the variable of h.
FunctionDef Reader(const std::string& name, const std::string& callee) {
  return FunctionDefHelper::Create(name, {"n: int32", "h: resource"}, {"r: int32"}, {},
                                   {BodyCall("call", callee, {"n", "h"}, kIntAndHandle), BodyRead("read", "h"),
                                    MakeBodyNode("add", "AddV2", {"call:results:0", "read:value:0"}, {{"T", kInt}})},
                                   {{"r", "add:z:0"}});
}

GraphBuilder TwoReaders() {
  GraphBuilder builder = Variables();
  builder.Call("y", "F", {"x", "v"}, kIntAndHandle).Call("z", "F", {"x", "w"}, kIntAndHandle);
  return builder.Function(Reader("F", "F"));
}

std::string Function(const GraphDef& graph, const std::string& node) {
  return Find(graph, node) == nullptr ? "no node " + node : Find(graph, node)->attr().at("function").s();
}

std::string DeviceIn(const GraphDef& graph, const std::string& node) {
  return Find(graph, node) == nullptr ? "no node " + node : Find(graph, node)->device();
}

const Devices kApart = {{"v", kDeviceA}, {"w", kDeviceB}};

TEST(CopiesTest, ABodyIsThereForEveryDeviceOfAResource) {
  const GraphDef expanded = Expand(On(kApart, TwoReaders().graph()), {"y:0", "z:0"});
  EXPECT_EQ(Names(NodesOf(expanded, kEntryOp)), (std::set<std::string>{"F/n", "F/h", "F__copy1/n", "F__copy1/h"}));
  EXPECT_EQ(Function(expanded, "y/call_0"), "F");
  EXPECT_EQ(Function(expanded, "F/call/call_1"), "F");
  EXPECT_EQ(Function(expanded, "z/call_0"), "F__copy1");
  EXPECT_EQ(Function(expanded, "F__copy1/call/call_1"), "F__copy1");
  EXPECT_EQ(Function(expanded, "F__copy1/call/return_0"), "F__copy1");
  EXPECT_EQ(DeviceIn(expanded, "F/h"), kDeviceA);
  EXPECT_EQ(DeviceIn(expanded, "F__copy1/h"), kDeviceB);
}

TEST(CopiesTest, OneBodyServesAllCallsWithResourcesOfOneDevice) {
  const GraphDef together = Expand(On({{"v", kDeviceA}, {"w", kDeviceA}}, TwoReaders().graph()), {"y:0", "z:0"});
  EXPECT_EQ(Names(NodesOf(together, kFrameStartOp)), std::set<std::string>{"F/recursion_frame_start"});
  const GraphDef alone = Expand(On(kApart, TwoReaders().graph()), {"z:0"});
  EXPECT_EQ(Names(NodesOf(alone, kFrameStartOp)), std::set<std::string>{"F/recursion_frame_start"});
  EXPECT_EQ(DeviceIn(alone, "F/h"), kDeviceB);
}

TEST(CopiesTest, WhatAFunctionCallsIsCopiedIfItPassesTheResource) {
  GraphBuilder builder = Variables();
  builder.Call("y", "F", {"x", "v"}, kIntAndHandle).Call("z", "F", {"x", "w"}, kIntAndHandle);
  builder.Function(FunctionDefHelper::Create(
      "F", {"n: int32", "h: resource"}, {"r: int32"}, {},
      {BodyCall("plain", "Plain", {"n"}), BodyCall("call", "G", {"plain:results:0", "h"}, kIntAndHandle)},
      {{"r", "call:results:0"}}));
  builder.Function(Reader("G", "F")).Function(Endless("Plain", "Plain"));
  const GraphDef expanded = Expand(On(kApart, builder.graph()), {"y:0", "z:0"});
  EXPECT_EQ(Function(expanded, "F__copy1/call/call_1"), "G__copy1");
  EXPECT_EQ(Function(expanded, "G__copy1/call/call_1"), "F__copy1");
  EXPECT_EQ(Function(expanded, "F__copy1/plain/call_0"), "Plain");
  EXPECT_EQ(Function(expanded, "F/plain/call_0"), "Plain");
  EXPECT_EQ(NodesOf(expanded, kFrameStartOp).size(), 5);
}

TEST(CopiesTest, ResourcesThatChangePlacesMakeACopy) {
  const Types types = {DT_RESOURCE, DT_RESOURCE};
  GraphBuilder builder = Variables();
  builder.Call("y", "F", {"v", "w"}, types);
  builder.Function(FunctionDefHelper::Create("F", {"a: resource", "b: resource"}, {"r: int32"}, {},
                                             {BodyRead("read", "a"), BodyCall("call", "F", {"b", "a"}, types)},
                                             {{"r", "call:results:0"}}));
  const GraphDef expanded = Expand(On(kApart, builder.graph()), {"y:0"});
  EXPECT_EQ(Function(expanded, "F/call/call_0"), "F__copy1");
  EXPECT_EQ(Function(expanded, "F__copy1/call/call_0"), "F");
  EXPECT_EQ(DeviceIn(expanded, "F__copy1/a"), kDeviceB);
  EXPECT_EQ(DeviceIn(expanded, "F__copy1/b"), kDeviceA);
}

// Pick(n, h) is h, by way of itself in one of two branches.
FunctionDef Pick() {
  return FunctionDefHelper::Create(
      "Pick", {"n: int32", "h: resource"}, {"r: resource"}, {},
      {BodyTrue("p"), MakeBodyNode("switch", "Switch", {"h", "p:output:0"}, {{"T", DT_RESOURCE}}),
       BodyCall("call", "Pick", {"n", "switch:output_false:0"}, kIntAndHandle, {DT_RESOURCE}),
       MakeBodyNode("merge", "Merge", {"call:results:0", "switch:output_true:0"}, {{"T", DT_RESOURCE}, {"N", 2}})},
      {{"r", "merge:output:0"}});
}

TEST(CopiesTest, ResourcesAreFollowedThroughCallsThatReturnThem) {
  GraphBuilder builder = Variables();
  builder.Call("y", "F", {"x", "a2"}, kIntAndHandle).Call("z", "F", {"x", "b1"}, kIntAndHandle);
  builder.Call("a2", "Pick", {"x", "a1"}, kIntAndHandle, {DT_RESOURCE});
  builder.Call("a1", "Pick", {"x", "v"}, kIntAndHandle, {DT_RESOURCE});
  builder.Call("b1", "Pick", {"x", "w"}, kIntAndHandle, {DT_RESOURCE});
  builder.Function(Reader("F", "F")).Function(Pick());
  const GraphDef expanded = Expand(On(kApart, builder.graph()), {"y:0", "z:0"});
  EXPECT_EQ(Function(expanded, "a2/call_0"), "Pick");
  EXPECT_EQ(Function(expanded, "Pick/call/call_0"), "Pick");
  EXPECT_EQ(Function(expanded, "b1/call_0"), "Pick__copy1");
  EXPECT_EQ(Function(expanded, "z/call_0"), "F__copy1");
  EXPECT_EQ(DeviceIn(expanded, "F/h"), kDeviceA);
  EXPECT_EQ(DeviceIn(expanded, "F__copy1/h"), kDeviceB);
}

// F(h) = F(F(h)): what the call returns is known only when it is.
TEST(CopiesTest, AResourceThatOnlyARecursionReturnsServesAnyBody) {
  GraphBuilder builder = Variables();
  builder.Call("y", "F", {"v"}, {DT_RESOURCE}, {DT_RESOURCE}).Node("read", "ReadVariableOp", {"y"}, {{"dtype", kInt}});
  builder.Function(
      FunctionDefHelper::Create("F", {"h: resource"}, {"r: resource"}, {},
                                {BodyCall("inner", "F", {"h"}, {DT_RESOURCE}, {DT_RESOURCE}),
                                 BodyCall("outer", "F", {"inner:results:0"}, {DT_RESOURCE}, {DT_RESOURCE})},
                                {{"r", "outer:results:0"}}));
  EXPECT_EQ(NodesOf(Expand(On(kApart, builder.graph()), {"read:0"}), kFrameStartOp).size(), 1);
}

TEST(CopiesTest, CallsThatTakeEachOthersResultsMayBeMany) {
  constexpr int kCalls = 5000;
  GraphBuilder builder = Variables();
  builder.Call("y", "F", {"x", absl::StrCat("pick", kCalls)}, kIntAndHandle);
  for (int i = kCalls; i > 0; --i) {
    const std::string from = i == 1 ? "v" : absl::StrCat("pick", i - 1);
    builder.Call(absl::StrCat("pick", i), "Pick", {"x", from}, kIntAndHandle, {DT_RESOURCE});
  }
  builder.Function(Reader("F", "F")).Function(Pick());
  EXPECT_EQ(DeviceIn(Expand(On(kApart, builder.graph()), {"y:0"}), "F/h"), kDeviceA);
}

// F(n, h) with its gradient: what the variable is like is asked through the record.
GraphBuilder DifferentiatedReaders() {
  GraphBuilder builder = Variables();
  Attrs forward = GraphBuilder::CallAttrs("F", kIntAndHandle, kInts);
  forward.emplace_back("forward", "F__forward1");
  const Types retained = {DT_RESOURCE, DT_VARIANT};
  builder.Node("y", kInvokeOp, {"x", "v"}, forward).Node("z", kInvokeOp, {"x", "w"}, forward);
  builder.Call("dy", "F__backward1", {"y:1"}, {DT_VARIANT}).Call("dz", "F__backward1", {"z:1"}, {DT_VARIANT});
  builder.Function(Reader("F", "F"));
  builder.Function(FunctionDefHelper::Create(
      "F__forward1", {"n: int32", "h: resource"}, {"r: int32", "record: variant"}, {},
      {MakeBodyNode("call", kInvokeOp, {"n", "h"}, forward),
       MakeBodyNode("retain", kRetainOp, {"h", "call:record:0"}, RecordAttrs("F__forward1", retained))},
      {{"r", "call:results:0"}, {"record", "retain:record:0"}}));
  return builder.Function(
      FunctionDefHelper::Create("F__backward1", {"record: variant"}, {"r: int32"}, {},
                                {MakeBodyNode("recall", kRecallOp, {"record"}, RecordAttrs("F__forward1", retained)),
                                 BodyCall("inner", "F__backward1", {"recall:values:1"}, {DT_VARIANT}),
                                 BodyCall("look", "F", {"inner:results:0", "recall:values:0"}, kIntAndHandle)},
                                {{"r", "look:results:0"}}));
}

TEST(CopiesTest, AGradientRunsTheCopyOfItsForwardCall) {
  const GraphDef expanded = Expand(On(kApart, DifferentiatedReaders().graph()), {"dy:0", "dz:0"});
  for (const auto& [call, copy] : Devices{{"dy", ""}, {"dz", "__copy1"}}) {
    const std::string backward = "F__backward1" + copy;
    EXPECT_EQ(Function(expanded, call + "/call_0"), backward);
    EXPECT_EQ(Function(expanded, backward + "/inner/call_0"), backward);
    EXPECT_EQ(Function(expanded, backward + "/look/call_1"), "F" + copy);
  }
  EXPECT_EQ(DeviceIn(expanded, "F/h"), kDeviceA);
  EXPECT_EQ(DeviceIn(expanded, "F__copy1/h"), kDeviceB);
}

TEST(CopiesTest, CopiesAvoidOtherFunctionsNames) {
  GraphBuilder builder = TwoReaders();
  builder.Const("F__copy2/n").Call("other", "F__copy1", {"y"}).Function(Endless("F__copy1", "F__copy1"));
  EXPECT_EQ(TakenNames({"F__copy2/n", "F__copy2/m", "F__copy/n", "F__copy2x/n"}, builder.graph().library()),
            std::vector<std::string>{"F__copy2/n"});
  const GraphDef expanded = Expand(On(kApart, builder.graph()), {"other:0", "z:0"});
  EXPECT_EQ(Function(expanded, "other/call_0"), "F__copy1");
  EXPECT_EQ(Function(expanded, "z/call_0"), "F__copy2");
  EXPECT_EQ(Names(NodesOf(expanded, kEntryOp)),
            (std::set<std::string>{"F/n", "F/h", "F__copy1/n", "F__copy2/n_1", "F__copy2/h"}));
}

// There are fourteen resources, seven on each device. The recursion makes all orders of them that there are.
TEST(CopiesTest, ReportsAFunctionThatWouldBeCopiedWithoutEnd) {
  const Types types(14, DT_RESOURCE);
  Inputs first, rotated, swapped;
  std::vector<std::string> arguments;
  for (int i = 0; i < 14; ++i) {
    first.emplace_back(i < 7 ? "v" : "w");
    arguments.push_back(absl::StrCat("a", i, ": resource"));
    rotated.push_back(absl::StrCat("a", (i + 1) % 14));
    swapped.push_back(absl::StrCat("a", i == 0 ? 1 : i == 1 ? 0 : i));
  }
  GraphBuilder builder = Variables();
  builder.Call("y", "F", first, types);
  builder.Function(
      FunctionDefHelper::Create("F", arguments, {"r: int32"}, {},
                                {BodyCall("rotate", "F", rotated, types), BodyCall("swap", "F", swapped, types),
                                 MakeBodyNode("add", "AddV2", {"rotate:results:0", "swap:results:0"}, {{"T", kInt}})},
                                {{"r", "add:z:0"}}));
  ExpectFault(On(kApart, builder.graph()), {"y:0"}, "Function 'F': its calls pass resources");
}

}  // namespace
}  // namespace tensorflow_recursion
