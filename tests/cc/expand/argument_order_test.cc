// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/argument_order.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/cc/expand/expansion.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_RESOURCE;
using tensorflow::FunctionDef;
using tensorflow::FunctionDefHelper;
using tensorflow::GraphDef;

const Types kHandleAndInt = {DT_RESOURCE, kInt};
FunctionDef Function(const std::string& name, const std::vector<BodyNode>& body, const std::string& result) {
  return FunctionDefHelper::Create(name, {"v: resource", "n: int32"}, {"r: int32"}, {}, body, {{"r", result}});
}

// F(v, n) assigns n to v, G reads v, and H does neither; P calls F.
GraphBuilder Functions() {
  GraphBuilder builder;
  builder.Function(Function("F", {MakeBodyNode("write", "AssignVariableOp", {"v", "n"}, {{"dtype", kInt}})}, "n"));
  builder.Function(Function("G", {MakeBodyNode("read", "ReadVariableOp", {"v"}, {{"dtype", kInt}})}, "read:value:0"));
  builder.Function(Function("H", {}, "n"));
  builder.Function(Function("P", {BodyCall("call", "F", {"v", "n"}, kHandleAndInt)}, "call:results:0"));
  return builder;
}

// A variable, "assigned" and "read", which wait for an assignment to it and for a read of another, and the value read.
GraphBuilder Main() {
  GraphBuilder builder = Functions();
  for (const char* name : {"v", "w"}) builder.Node(name, "VarHandleOp", {}, kOfInts);
  builder.Const("x").Node("assign", "AssignVariableOp", {"v", "x"}, {{"dtype", kInt}});
  builder.Node("assigned", "Identity", {"x", "^assign"}, {{"T", kInt}});
  builder.Node("value", "ReadVariableOp", {"w"}, {{"dtype", kInt}});
  builder.Node("read", "Identity", {"x", "^value"}, {{"T", kInt}});
  return builder;
}

Inputs HandleOf(const std::string& function, const std::string& argument) {
  GraphBuilder builder = Main();
  builder.Call("y", function, {"v", argument}, kHandleAndInt);
  return InputsOf(Expand(builder.graph(), {"y:0"}), "y/call_0");
}

TEST(ArgumentOrderTest, CallsThatWriteWaitForArgumentsAfterReadsAndWrites) {
  for (const char* function : {"F", "P"}) {
    EXPECT_EQ(HandleOf(function, "assigned"), (Inputs{"v", "^assigned"})) << function;
    EXPECT_EQ(HandleOf(function, "read"), (Inputs{"v", "^read"})) << function;
    EXPECT_EQ(HandleOf(function, "x"), Inputs{"v"}) << function;
  }
}

TEST(ArgumentOrderTest, CallsThatReadWaitForArgumentsAfterWrites) {
  EXPECT_EQ(HandleOf("G", "assigned"), (Inputs{"v", "^assigned"}));
  EXPECT_EQ(HandleOf("G", "read"), Inputs{"v"});
}

TEST(ArgumentOrderTest, OtherCallsGoOnAsTheirArgumentsCome) {
  EXPECT_EQ(HandleOf("H", "assigned"), Inputs{"v"});
  EXPECT_EQ(HandleOf("F", "value"), Inputs{"v"});
}

TEST(ArgumentOrderTest, ValuesOfSwitchesAreWaitedForOnTheSideTheyAreOn) {
  GraphBuilder builder = Main();
  builder.Node("p", "Const", {}, {{"dtype", tensorflow::DT_BOOL}, {"value", tensorflow::Tensor(true)}});
  builder.Node("switch", "Switch", {"assigned", "p"}, {{"T", kInt}});
  builder.Call("y", "F", {"v", "switch:1"}, kHandleAndInt);
  const GraphDef expanded = Expand(builder.graph(), {"y:0"});
  EXPECT_EQ(InputsOf(expanded, "y/call_0"), (Inputs{"v", "^switch/pivot"}));
  EXPECT_EQ(InputsOf(expanded, "switch/pivot"), Inputs{"switch:1"});
}

TEST(ArgumentOrderTest, ResultsOfCallsAreWaitedForWithTheSideEffectsOfTheCall) {
  GraphBuilder builder = Main();
  builder.Call("f", "F", {"w", "assigned"}, kHandleAndInt).Call("g", "G", {"w", "assigned"}, kHandleAndInt);
  builder.Call("y", "F", {"v", "f"}, kHandleAndInt).Call("z", "F", {"v", "g"}, kHandleAndInt);
  const GraphDef expanded = Expand(builder.graph(), {"y:0", "z:0"});
  EXPECT_EQ(InputsOf(expanded, "y/call_0"), (Inputs{"v", "^f"}));
  EXPECT_EQ(InputsOf(expanded, "z/call_0"), (Inputs{"v", "^g/pivot"}));
}

TEST(ArgumentOrderTest, SeveralWaitsAreOne) {
  GraphBuilder builder = Main();
  builder.Node("handle", "Identity", {"v", "^assign"}, {{"T", DT_RESOURCE}});
  builder.Call("y", "F", {"handle", "assigned"}, kHandleAndInt);
  const GraphDef expanded = Expand(builder.graph(), {"y:0"});
  EXPECT_EQ(InputsOf(expanded, "y/call_0"), (Inputs{"handle", "^y/arguments"}));
  EXPECT_EQ(InputsOf(expanded, "y/call_1"), (Inputs{"assigned", "^y/arguments"}));
  EXPECT_EQ(InputsOf(expanded, "y/arguments"), (Inputs{"^assigned", "^handle"}));
}

}  // namespace
}  // namespace tensorflow_recursion
