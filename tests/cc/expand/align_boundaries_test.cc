// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/align_boundaries.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "cc/expand/placement.h"
#include "tests/cc/base/graphs.h"
#include "tests/cc/values/small_stack_threads.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_RESOURCE;

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
    return FindNode(*program_.functions.at(function).graph, name);
  }
  std::string Device(const std::string& function, const std::string& name) const {
    return DeviceOf(*Node(function, name));
  }

 private:
  CallProgram program_;
};

TEST(AlignBoundariesTest, AnArgumentMovesToItsReaders) {
  GraphBuilder body;
  Arg(&body, "n", 0).Node("neg", "Neg", {"n"}, {{"T", kInt}});
  Bodies bodies;
  bodies.Add("F", Ret(&body, "neg", 0), {{"", kDeviceA}, {"neg", kDeviceB}}).Align();
  EXPECT_EQ(bodies.Device("F", "n"), kDeviceB);
  EXPECT_EQ(bodies.Device("F", "neg"), kDeviceB);
  EXPECT_EQ(bodies.Device("F", "ret_0"), kDeviceB);
}

TEST(AlignBoundariesTest, ADeviceThatWasAskedForIsMovedToo) {
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

TEST(AlignBoundariesTest, MostReadersWinAndTiesStay) {
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

TEST(AlignBoundariesTest, ReadersBehindASwitchCountAndTheSwitchDoesNot) {
  GraphBuilder body;
  Arg(&body, "n", 0).Node("p", "Const", {}, {{"dtype", tensorflow::DT_BOOL}, {"value", tensorflow::Tensor(true)}});
  body.Node("switch", "Switch", {"n", "p"}, {{"T", kInt}}).Node("neg", "Neg", {"switch:1"}, {{"T", kInt}});
  Bodies bodies;
  bodies.Add("F", body, {{"", kDeviceA}, {"neg", kDeviceB}}).Align();
  EXPECT_EQ(bodies.Device("F", "n"), kDeviceB);
}

TEST(AlignBoundariesTest, ReadersInCalleesCount) {
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
TEST(AlignBoundariesTest, AChainOfFunctionsMayBeLongerThanTheStackIsDeep) {
  constexpr int kLast = kDeepForSmallStacks / 2;
  Bodies bodies;
  for (int i = 0; i < kLast; ++i) {
    GraphBuilder body;
    Arg(&body, "n", 0).Call("call", absl::StrCat("F", i + 1), {"n"});
    bodies.Add(absl::StrCat("F", i), Ret(&body, "call", 0), {{"", kDeviceA}});
  }
  GraphBuilder last;
  Arg(&last, "n", 0).Node("neg", "Neg", {"n"}, {{"T", kInt}});
  bodies.Add(absl::StrCat("F", kLast), Ret(&last, "neg", 0), {{"", kDeviceB}});
  {
    SmallStackThreads threads;
    threads.Schedule([&bodies] { bodies.Align(); });
  }
  EXPECT_EQ(bodies.Device("F0", "n"), kDeviceB);
  EXPECT_EQ(bodies.Device("F0", "ret_0"), kDeviceB);
  EXPECT_EQ(bodies.Device("F0", "call"), kDeviceA);
}

TEST(AlignBoundariesTest, MutualFunctionsReturnWhatOneOfThemMakes) {
  GraphBuilder even, odd;
  Arg(&even, "n", 0).Call("call", "Odd", {"n"}).Node("neg", "Neg", {"n"}, {{"T", kInt}});
  Arg(&odd, "n", 0).Call("call", "Even", {"n"});
  Bodies bodies;
  bodies.Add("Even", Ret(&even, "neg", 0), {{"", kDeviceA}, {"neg", kDeviceB}});
  bodies.Add("Odd", Ret(&odd, "call", 0), {{"", kDeviceA}}).Align();
  EXPECT_EQ(bodies.Device("Even", "n"), kDeviceA);  // a tie
  for (const char* function : {"Even", "Odd"}) EXPECT_EQ(bodies.Device(function, "ret_0"), kDeviceB) << function;
}

TEST(AlignBoundariesTest, ARecursionAddsNoReadersToThoseOfTheBody) {
  GraphBuilder body;
  Arg(&body, "n", 0).Call("call", "F", {"n"}).Node("neg", "Neg", {"n"}, {{"T", kInt}});
  Bodies bodies;
  bodies.Add("F", Ret(&body, "call", 0), {{"", kDeviceA}, {"neg", kDeviceB}}).Align();
  EXPECT_EQ(bodies.Device("F", "n"), kDeviceB);
  EXPECT_EQ(bodies.Device("F", "ret_0"), kDeviceA);  // nobody makes it
}

TEST(AlignBoundariesTest, ArgumentsThatAreOnlyPassedOnStay) {
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

TEST(AlignBoundariesTest, HandlesStay) {
  GraphBuilder body;
  Arg(&body, "v", 0, DT_RESOURCE).Node("read", "ReadVariableOp", {"v"}, {{"dtype", kInt}});
  Arg(&body, "record", 1, tensorflow::DT_VARIANT)
      .Node("copy", "ZerosLike", {"record"}, {{"T", tensorflow::DT_VARIANT}});
  Bodies bodies;
  bodies.Add("F", body, {{"", kDeviceA}, {"read", kDeviceB}, {"copy", kDeviceB}}).Align();
  EXPECT_EQ(bodies.Device("F", "v"), kDeviceA);
  EXPECT_EQ(bodies.Device("F", "record"), kDeviceA);
}

TEST(AlignBoundariesTest, CallsThatDoNotFitAreLeftAlone) {
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
