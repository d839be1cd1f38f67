// Bodies on several devices, from the pass before TensorFlow's partitioning to the results: every partition is a
// program of its own, and they meet in sends and receives alone.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cc/program/program.h"
#include "tests/cc/kernels/partitions.h"

namespace tensorflow_recursion {
namespace {

TEST_F(PartitionTest, ComputesFibAnywhere) {
  const StaticGraph graph = FibGraph();
  ExpectAnywhere(graph, {9}, {34});
  ExpectAnywhere(graph, {1}, {1});
}

TEST_F(PartitionTest, ComputesMutualRecursionAnywhere) {
  StaticGraph graph;
  AddMain(&graph, "Even", 1);
  for (const auto& [name, other, id] : {std::tuple("Even", "Odd", 2), std::tuple("Odd", "Even", 3)}) {
    auto in = [name = std::string(name)](const char* node) { return absl::StrCat(name, "/", node); };
    graph.Function(name, {"n"})
        .Const(in("zero"), 0, {"^" + in("frame_start")})
        .Const(in("one"), 1, {"^" + in("frame_start")});
    graph.Op(in("done"), "Equal", {in("n"), in("zero")}).Op(in("switch"), "Switch", {in("n"), in("done")});
    graph.Op(in("less"), "Sub", {in("switch"), in("one")}).Call(in("call"), other, id, {in("less")});
    graph.Op(in("pivot"), "Identity", {in("switch:1")}).Const(in("answer"), id == 2 ? 1 : 0, {"^" + in("pivot")});
    Merge(&graph, in("merge"), {in("call/return_0"), in("answer")}).Result(name, in("merge"));
  }
  ExpectAnywhere(graph, {12}, {1});
  ExpectAnywhere(graph, {11}, {0});
}

TEST_F(PartitionTest, ComputesLoopsInBodiesAnywhere) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"n"});
  AddSumOfFibs(&graph, "F/", "F/n", {"^F/frame_start"}, 2).Result("F", "F/exit");
  AddFib(&graph, 3);
  ExpectAnywhere(graph, {5}, {0 + 1 + 1 + 2 + 3});
  ExpectAnywhere(graph, {0}, {0});
}

TEST_F(PartitionTest, ComputesCallsInLoopsOfTheMainGraphAnywhere) {
  StaticGraph graph;
  graph.Arg("n");
  AddSumOfFibs(&graph, "", "n", {}, 1).Retval("exit");
  AddFib(&graph, 2);
  ExpectAnywhere(graph, {5}, {0 + 1 + 1 + 2 + 3});
}

TEST_F(PartitionTest, LoopsMayStandInBranchesThatAreNotTaken) {
  StaticGraph graph;
  BeginChoice(&graph).Op("F/pivot", "Identity", {"F/switch"});
  AddSumOfFibs(&graph, "F/sum_", "F/switch", {"^F/pivot"}, 2);
  AddFib(&graph, 3);
  EndChoice(&graph, "F/sum_exit");
  ExpectAnywhere(graph, {5}, {0 + 1 + 1 + 2 + 3});
  ExpectAnywhere(graph, {-4}, {4});
}

// One argument comes long after the other: the call opens with what there is.
TEST_F(PartitionTest, InvokesPartiallyAnywhere) {
  StaticGraph graph;
  graph.Arg("x").Call("slow", "Fib", 4, {"x"}).Call("main", "F", 1, {"x", "slow/return_0"}, 2);
  graph.Retval("main/return_0").Retval("main/return_1", 1);
  graph.Function("F", {"x", "y"}).Op("F/square", "Square", {"F/x"}).Op("F/sum", "AddV2", {"F/x", "F/y"});
  graph.Result("F", "F/square").Result("F", "F/sum", 1);
  AddFib(&graph, 2);
  ExpectAnywhere(graph, {6}, {36, 14});
}

// Calls in branches, and a function whose result depends on no argument: all devices agree on whether a call lives.
TEST_F(PartitionTest, CallsDieAnywhere) {
  StaticGraph graph;
  BeginChoice(&graph).Call("F/call", "G", 2, {"F/switch", "F/x"});
  graph.Function("G", {"x", "y"}).Const("G/one", 1, {"^G/frame_start"}).Op("G/neg", "Neg", {"G/y"});
  graph.Op("G/sum", "AddV2", {"G/one", "G/neg"}).Kernel("G/effect", {"G/x"}, 0, true).Result("G", "G/sum");
  graph.Op("F/dead_or_alive", "AddV2", {"F/call/return_0", "F/switch"});
  EndChoice(&graph, "F/dead_or_alive");
  ExpectAnywhere(graph, {5}, {1});
}

TEST_F(PartitionTest, LoopsInLoopsMayStandInBranchesThatAreNotTaken) {
  StaticGraph graph;
  BeginChoice(&graph).Op("F/pivot", "Identity", {"F/switch"}).Const("F/start", 0, {"^F/pivot"});
  for (const auto& [prefix, n, start] :
       {std::tuple("F/o_", "F/switch", "F/start"), std::tuple("F/i_", "F/o_body", "F/o_zero")}) {
    auto in = [prefix = std::string(prefix)](const char* node) { return prefix + node; };
    graph.Enter(in("enter_i"), start, in("loop")).Enter(in("enter_n"), n, in("loop"), true);
    Merge(&graph, in("i"), {in("enter_i"), in("next")});
    graph.Op(in("less"), "Less", {in("i"), in("enter_n")}).Node(in("cond"), "LoopCond", {in("less")});
    graph.Op(in("switch"), "Switch", {in("i"), in("cond")}).Op(in("exit"), "Exit", {in("switch")});
    graph.Op(in("body"), "Identity", {in("switch:1")}).Const(in("zero"), 0, {"^" + in("body")});
    graph.Const(in("one"), 1, {"^" + in("body")}).Op(in("add"), "AddV2", {in("body"), in("one")});
  }
  graph.Op("F/i_next", "NextIteration", {"F/i_add"}).Op("F/both", "Maximum", {"F/i_exit", "F/o_add"});
  graph.Op("F/o_next", "NextIteration", {"F/both"});
  EndChoice(&graph, "F/o_exit");
  ExpectAnywhere(graph, {3}, {3});
  ExpectAnywhere(graph, {-4}, {4});
}

// The KeepAlives are as the transformation leaves them. The body is on one device, the loops around the call on
// another.
TEST_F(PartitionTest, BodiesOnOneDeviceAreCalledFromLoopsOnAnother) {
  StaticGraph graph;
  graph.Arg("n").Const("zero", 0).Node("keep_alive", kKeepAliveOp, {"^Fib/frame_start", "^Fib/result_0"});
  AddFib(&graph, 2);
  std::string n = "n";
  std::string token = "keep_alive";
  std::string start = "zero";
  for (const std::string prefix : {"o_", "i_"}) {
    auto in = [&](const char* node) { return prefix + node; };
    graph.Enter(in("enter_i"), start, in("loop")).Enter(in("enter_n"), n, in("loop"), true);
    graph.Enter(in("token"), token, in("loop"), true);
    Merge(&graph, in("i"), {in("enter_i"), in("next")});
    graph.Op(in("less"), "Less", {in("i"), in("enter_n")}).Node(in("cond"), "LoopCond", {in("less")});
    graph.Op(in("switch"), "Switch", {in("i"), in("cond")}).Op(in("exit"), "Exit", {in("switch")});
    graph.Op(in("body"), "Identity", {in("switch:1")}).Const(in("zero"), 0, {"^" + in("body")});
    graph.Const(in("one"), 1, {"^" + in("body")}).Op(in("add"), "AddV2", {in("body"), in("one")});
    n = in("add");
    token = in("token");
    start = in("zero");
  }
  graph.Call("fib", "Fib", 1, {"i_body"}, 0).Return("fib", "Fib", 1, 0, {"i_token", "^fib/call_0"});
  graph.Op("i_max", "Maximum", {"fib/return_0", "i_add"}).Op("i_next", "NextIteration", {"i_max"});
  graph.Op("o_next", "NextIteration", {"i_exit"}).Retval("o_exit");
  const std::vector<int> expected = RunOn(graph, {{"", kDeviceA}}, {3});
  EXPECT_EQ(expected.size(), 1);
  EXPECT_EQ(RunOn(graph, {{"", kDeviceB}, {"n", kDeviceA}, {"retval", kDeviceA}, {"Fib/", kDeviceA}}, {3}), expected);
  EXPECT_EQ(RunOn(graph, {{"", kDeviceA}, {"Fib/", kDeviceB}}, {3}), expected);
  EXPECT_EQ(RunOn(graph, {{"", kDeviceA}, {"keep_alive", kDeviceB}, {"i_", kDeviceB}}, {3}), expected);
  ExpectAnywhere(graph, {3}, expected);
}

// No Entry: pruning takes those that nobody reads.
TEST_F(PartitionTest, FunctionsMayReadNoArgument) {
  StaticGraph graph;
  graph.Function("F", {}).Const("F/one", 1, {"^F/frame_start"}).Op("F/neg", "Neg", {"F/one"}).Result("F", "F/neg");
  graph.Arg("x").Call("main", "F", 1, {"x"}).Retval("main/return_0");
  EXPECT_EQ(RunOn(graph, {{"", kDeviceA}, {"F/", kDeviceB}}, {3}), std::vector<int>{-1});
  ExpectAnywhere(graph, {3}, {-1});
}

// What docs/design.md says a call costs: a message to each other device of the callee, and one for each edge.
TEST_F(PartitionTest, ACallSendsOneMessageToEachOtherDeviceAndOneForEachEdge) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"x"}).Op("F/square", "Square", {"F/x"}).Op("F/sum", "AddV2", {"F/x", "F/square"});
  graph.Result("F", "F/sum");
  EXPECT_EQ(RunOn(graph, {{"", kDeviceA}}, {3}), std::vector<int>{12});
  EXPECT_EQ(messages_.sent, 0);
  EXPECT_EQ(RunOn(graph, {{"", kDeviceA}, {"F/square", kDeviceB}}, {3}), std::vector<int>{12});
  EXPECT_EQ(messages_.sent, 3);
  EXPECT_EQ(messages_.dead, 0);
}

// Graphs that nobody has made: an error, or a program, but no crash.
TEST_F(PartitionTest, ForgedGraphsAreErrorsOrPrograms) {
  StaticGraph whole;
  AddMain(&whole, "F", 2, 2);
  whole.Function("F", {"n", "m"}).Call("F/fib", "Fib", 5, {"F/n"}).Op("F/neg", "Neg", {"F/m"});
  whole.Result("F", "F/fib/return_0").Result("F", "F/neg", 1);
  whole.Node("keep_alive", kKeepAliveOp, {"^F/frame_start", "^F/result_0", "^Fib/result_0"});
  whole.Call("again", "F", 6, {"x0", "x1"}, 0).Return("again", "F", 6, 0, {"keep_alive", "^again/call_0"});
  whole.Retval("again/return_0", 2);
  AddFib(&whole, 2);
  const std::vector<std::string> names = {kDeviceA, kDeviceB, kDeviceC};
  int num_built = 0;
  int num_refused = 0;
  for (uint32_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::minstd_rand random(seed);
    random.discard(5);
    tensorflow::GraphDef def = whole.graph();
    auto any = [&] { return def.mutable_node(static_cast<int>(random() % def.node_size())); };
    for (uint32_t i = 0; i < 1 + seed % 3; ++i) {
      tensorflow::NodeDef* node = any();
      auto& attrs = *node->mutable_attr();
      switch (random() % 6) {
        case 0:
          if (attrs.count(kCallIdAttr) > 0) attrs[kCallIdAttr].set_i(static_cast<int64_t>(random() % 9) - 1);
          break;
        case 1:
          if (attrs.count(kIndexAttr) > 0) attrs[kIndexAttr].set_i(static_cast<int64_t>(random() % 4));
          break;
        case 2:
          if (attrs.count(kFunctionAttr) > 0) attrs[kFunctionAttr].set_s(random() % 2 == 0 ? "F" : "Undefined");
          break;
        case 3:
          if (node->input_size() > 0) node->set_input(0, any()->name());
          break;
        case 4:
          if (node->input_size() > 1) node->mutable_input()->RemoveLast();
          break;
        default:
          node->add_input("^" + any()->name());
      }
    }
    std::unique_ptr<tensorflow::Graph> graph;
    if (!Construct(def, &graph).ok()) continue;
    for (tensorflow::Node* node : graph->op_nodes()) {
      node->set_assigned_device_name(node->IsArg() || node->IsRetval() ? kDeviceA : names[random() % 3]);
    }
    const BuiltPartitions built = BuildPartitions(graph.get());
    EXPECT_TRUE(built.status.ok() || absl::IsInvalidArgument(built.status)) << built.status;
    ++(built.status.ok() ? num_built : num_refused);
    if (built.status.ok()) RunAndEnd(built, seed);
  }
  EXPECT_GT(num_built, 30);
  EXPECT_GT(num_refused, 30);
}

}  // namespace
}  // namespace tensorflow_recursion
