// Graphs as the transformation leaves them, compiled, printed and run.
// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/compiler.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cc/analysis/superfluous_waits.h"
#include "cc/bytecode/disassembler.h"
#include "cc/bytecode/interpreter.h"
#include "cc/values/scalar_operators.h"
#include "tests/cc/analysis/static_graphs.h"
#include "tests/cc/bytecode/interpreting.h"

namespace tensorflow_recursion {
namespace {

class CompilerTest : public ::testing::Test {
 protected:
  void Compile(const StaticGraph& from) {
    ASSERT_TRUE(Construct(from.graph(), &graph_).ok());
    GraphRegions regions;
    ASSERT_TRUE(regions.Build(*graph_).ok());
    absl::Status status = BuildFlowGraph(*graph_, std::move(regions), DeviceMemory(), &flow_);
    ASSERT_TRUE(status.ok()) << status;
    status = DropSuperfluousWaits(&flow_);
    ASSERT_TRUE(status.ok()) << status;
    compiled_ = CompileFunctions(flow_);
  }

  int Find(const std::string& name) {
    const auto position = compiled_.functions.find(flow_.regions.FindFunction(name));
    return position == compiled_.functions.end() ? -1 : position->second;
  }

  std::string Listing(const std::string& name) {
    const int function = Find(name);
    return function < 0 ? "" : Disassemble(*compiled_.code, compiled_.code->functions[function]);
  }

  int32_t Run(const std::string& name, const std::vector<int32_t>& arguments) {
    const int function = Find(name);
    EXPECT_GE(function, 0);
    if (function < 0) return -1;
    Interpreter interpreter(*compiled_.code, kMuch, nullptr, nullptr);
    std::vector<uint64_t> bits;
    for (const int32_t argument : arguments) bits.push_back(ToBits(argument));
    EXPECT_TRUE(interpreter.Start(function, bits, 1));
    int64_t budget = kMuch;
    EXPECT_EQ(interpreter.Resume(&budget), Interpreter::State::kDone);
    return FromBits<int32_t>(interpreter.results()[0]);
  }

  std::unique_ptr<tensorflow::Graph> graph_;
  FlowGraph flow_;
  CompiledFunctions compiled_;
};

TEST_F(CompilerTest, FibIsFourInstructions) {
  const StaticGraph graph = FibGraph();
  Compile(graph);
  EXPECT_EQ(Listing("Fib"),
            "Fib(int32) -> int32\n"
            "    0  ReturnUnlessGreaterEqualInt32K r0 unless r0, 2\n"
            "    1  CallSubInt32KIfGreaterEqualInt32K r1 = Fib(r2) after r2 = r0, 1\n"
            "    3  CallSubInt32KIfGreaterEqualInt32K r0 = Fib(r3) after r3 = r0, 2\n"
            "    5  ReturnAddInt32           r1, r0\n");
  EXPECT_EQ(Run("Fib", {20}), 6765);
}

// F(n) = the sum of Fib(i) for i < n, by a loop.
TEST_F(CompilerTest, LoopsCall) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"n"});
  AddSumOfFibs(&graph, "F/", "F/n", {"^F/frame_start"}, 2).Result("F", "F/exit");
  AddFib(&graph, 3);
  Compile(graph);
  EXPECT_EQ(Listing("F"),
            "F(int32) -> int32\n"
            "    0  Constant                 r1 = 0\n"
            "    1  Constant                 r2 = 0\n"
            "    2  ReturnUnlessLessInt32    r2 unless r1, r0\n"
            "    3  AddInt32K                r3 = r1, 1\n"
            "    4  Move                     r5 = r1\n"
            "    5  CallIfGreaterEqualInt32K r4 = Fib(r5)\n"
            "    6  AddInt32                 r2 = r2, r4\n"
            "    7  Move                     r1 = r3\n"
            "    8  Repeat                   -> 2\n");
  EXPECT_EQ(Run("F", {10}), 88);
}

// Tak(x, y, z) = z if not y < x else Tak(Tak(x-1, y, z), Tak(y-1, z, x), Tak(z-1, x, y))
TEST_F(CompilerTest, CallsAreArguments) {
  StaticGraph graph;
  AddMain(&graph, "T", 3);
  graph.Function("T", {"x", "y", "z"}).Const("T/one", 1, {"^T/frame_start"}).Op("T/less", "Less", {"T/y", "T/x"});
  for (const std::string name : {"x", "y", "z"}) {
    graph.Op("T/s" + name, "Switch", {"T/" + name, "T/less"});
    graph.Op("T/" + name + "1", "Sub", {"T/s" + name + ":1", "T/one"});
  }
  graph.Call("T/a", "T", 2, {"T/x1", "T/sy:1", "T/sz:1"}).Call("T/b", "T", 3, {"T/y1", "T/sz:1", "T/sx:1"});
  graph.Call("T/c", "T", 4, {"T/z1", "T/sx:1", "T/sy:1"});
  graph.Call("T/d", "T", 5, {"T/a/return_0", "T/b/return_0", "T/c/return_0"});
  Merge(&graph, "T/merge", {"T/sz", "T/d/return_0"}).Result("T", "T/merge");
  Compile(graph);
  EXPECT_EQ(Listing("T"),
            "T(int32, int32, int32) -> int32\n"
            "    0  ReturnUnlessLessInt32    r2 unless r1, r0\n"
            "    1  Move2                    r5, r6 = r1, r2\n"
            "    2  CallSubInt32KIfLessInt32 r3 = T(r4, r5, r6) after r4 = r0, 1\n"
            "    4  Move2                    r6, r7 = r2, r0\n"
            "    5  CallSubInt32KIfLessInt32 r4 = T(r5, r6, r7) after r5 = r1, 1\n"
            "    7  Move2                    r7, r8 = r0, r1\n"
            "    8  CallSubInt32KIfLessInt32 r0 = T(r6, r7, r8) after r6 = r2, 1\n"
            "   10  Move2                    r1, r2 = r3, r4\n"
            "   11  Move                     r3 = r0\n"
            "   12  CallIfLessInt32          r0 = T(r1, r2, r3)\n"
            "   13  Return                   r0\n");
  EXPECT_EQ(Run("T", {18, 12, 6}), 7);
}

// F(x, y) = (G(y, x)[1], x) with G(a, b) = (b, a + b): results swap registers.
TEST_F(CompilerTest, SeveralResults) {
  StaticGraph graph;
  AddMain(&graph, "F", 2, 2);
  graph.Function("F", {"x", "y"}).Call("F/call", "G", 2, {"F/y", "F/x"}, 2);
  graph.Result("F", "F/call/return_1", 0).Result("F", "F/call/return_0", 1);
  graph.Function("G", {"a", "b"}).Op("G/sum", "AddV2", {"G/a", "G/b"});
  graph.Result("G", "G/b", 0).Result("G", "G/sum", 1);
  Compile(graph);
  EXPECT_EQ(Listing("F") + Listing("G"),
            "F(int32, int32) -> int32, int32\n"
            "    0  Move                     r2 = r0\n"
            "    1  Call                     r1 = G(r1, r2)\n"
            "    2  Move                     r0 = r2\n"
            "    3  ReturnAll\n"
            "G(int32, int32) -> int32, int32\n"
            "    0  AddInt32                 r0 = r0, r1\n"
            "    1  Move                     r2 = r0\n"
            "    2  Move2                    r0, r1 = r1, r2\n"
            "    3  ReturnAll\n");
  EXPECT_EQ(Run("F", {3, 4}), 7);
}

TEST_F(CompilerTest, FunctionsWithOtherOperatorsStayGraphs) {
  StaticGraph graph;
  AddMain(&graph, "F", 1);
  graph.Function("F", {"n"}).Kernel("F/kernel", {"F/n"}).Result("F", "F/kernel");
  Compile(graph);
  EXPECT_EQ(compiled_.code, nullptr);
}

}  // namespace
}  // namespace tensorflow_recursion
