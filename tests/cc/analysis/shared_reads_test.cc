// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/shared_reads.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/analysis/keep_invariants.h"
#include "cc/analysis/superfluous_waits.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {
namespace {

constexpr tensorflow::DataType kHandle = tensorflow::DT_RESOURCE;
// The number of the variable's value among the invariants of the recursion: that of its handle is 0.
constexpr uint32_t kValue = 1;

// A call of a function of a number and a handle: nodes "<site>/call_0", "<site>/call_1" and "<site>/return_0".
void AddCall(StaticGraph* graph, const std::string& site, const std::string& function, int call_id,
             const std::string& number, const std::string& handle) {
  const std::string calls = site + "/call_";
  graph->Node(calls + "0", kCallOp, {number}, StaticGraph::SiteAttrs(function, call_id, 0));
  graph->Node(calls + "1", kCallOp, {handle}, StaticGraph::SiteAttrs(function, call_id, 1, kHandle));
  graph->Return(site, function, call_id, 0, {"^" + calls + "0", "^" + calls + "1"});
}

StaticGraph& AddRead(StaticGraph* graph, const std::string& name, const std::string& handle,
                     const Inputs& controls = {}) {
  Inputs inputs = {handle};
  inputs.insert(inputs.end(), controls.begin(), controls.end());
  return graph->Node(name, "ReadVariableOp", inputs, {{"dtype", kInt}});
}

// F(n, v) = k(n) if n < 1 else callee(n - 1, v) + read(v), all of it between an entrance "F/" and F's result.
void AddReader(StaticGraph* graph, const std::string& name, const std::string& callee, int call_id) {
  auto in = [&](const std::string& node) { return absl::StrCat(name, "/", node); };
  graph->Function(name, {"n"}).Entry(name, "v", 1, kHandle).Const(in("one"), 1, {"^" + in("frame_start")});
  graph->Op(in("less"), "Less", {in("n"), in("one")});
  graph->Op(in("sn"), "Switch", {in("n"), in("less")}).Op(in("sv"), "Switch", {in("v"), in("less")}, kHandle);
  graph->Op(in("n1"), "Sub", {in("sn"), in("one")});
  AddCall(graph, in("call"), callee, call_id, in("n1"), in("sv"));
  AddRead(graph, in("read"), in("sv"));
  graph->Op(in("sum"), "AddV2", {in("call/return_0"), in("read")}).Kernel(in("base"), {in("sn:1")});
  Merge(graph, in("merge"), {in("sum"), in("base")}).Result(name, in("merge"));
}

// F(n, v) = ... if n < 1 else ..., which calls F(n - 1, v) and reads the variable where n < 1 does not hold. Its result
// is still to be made, of F/call/return_0, F/read and F/sn:1.
void BeginRecursion(StaticGraph* graph) {
  graph->Function("F", {"n"}).Entry("F", "v", 1, kHandle).Const("F/one", 1, {"^F/frame_start"});
  graph->Op("F/less", "Less", {"F/n", "F/one"});
  graph->Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/sv", "Switch", {"F/v", "F/less"}, kHandle);
  graph->Op("F/n1", "Sub", {"F/sn", "F/one"});
  AddCall(graph, "F/call", "F", 2, "F/n1", "F/sv");
  AddRead(graph, "F/read", "F/sv");
}

// The main graph calls F(n, v), where v is argument 1 of the program.
void AddMainOfReader(StaticGraph* graph) {
  graph->Arg("n").Arg("v", 1, kHandle);
  AddCall(graph, "main", "F", 1, "n", "v");
  graph->Retval("main/return_0");
}

// What becomes of a graph as a program is built of it.
struct Shared {
  explicit Shared(const StaticGraph& of) {
    EXPECT_TRUE(Construct(of.graph(), &graph).ok());
    GraphRegions regions;
    EXPECT_TRUE(regions.Build(*graph).ok());
    EXPECT_TRUE(BuildFlowGraph(*graph, std::move(regions), DeviceMemory(), &flow).ok());
    EXPECT_TRUE(DropSuperfluousWaits(&flow).ok());
    const VariableReaders readers = FindVariableReaders(flow);
    EXPECT_TRUE(KeepInvariants({}, &flow).ok());
    EXPECT_TRUE(ShareReads(readers, &flow, &reads).ok());
  }

  const FlowNode& Node(const std::string& name) const {
    for (const FlowNode& node : flow.nodes) {
      if (node.node != nullptr && node.node->name() == name) return node;
    }
    ADD_FAILURE() << "no flow node for " << name;
    return flow.nodes[NodeId(0)];
  }

  std::unique_ptr<tensorflow::Graph> graph;
  FlowGraph flow;
  std::vector<ArgumentRead> reads;
};

TEST(SharedReadsTest, AreOfVariablesThatAreArgumentsOfTheProgram) {
  StaticGraph graph;
  AddMainOfReader(&graph);
  AddReader(&graph, "F", "F", 2);
  const Shared shared(graph);
  ASSERT_EQ(shared.reads.size(), 1);
  EXPECT_EQ(shared.reads[0].argument, 1);
  EXPECT_EQ(shared.flow.kernels[shared.reads[0].kernel].name, "F/read");
  ASSERT_EQ(shared.flow.recursions.size(), 1);
  ASSERT_EQ(shared.flow.recursions[0].reads.size(), 1);
  EXPECT_EQ(shared.flow.recursions[0].reads[0].handle, 0);
  EXPECT_TRUE(shared.Node("F/read").is_removed);
  EXPECT_EQ(shared.Node("F/sum").inputs[1].invariant, kValue);
}

TEST(SharedReadsTest, OneValueServesAllFunctions) {
  StaticGraph graph;
  AddMainOfReader(&graph);
  AddReader(&graph, "F", "G", 2);
  AddReader(&graph, "G", "F", 3);
  const Shared shared(graph);
  EXPECT_EQ(shared.reads.size(), 1);
  EXPECT_EQ(shared.Node("F/sum").inputs[1].invariant, kValue);
  EXPECT_EQ(shared.Node("G/sum").inputs[1].invariant, kValue);
}

// The sum of the two calls is x(v) + x(w).
TEST(SharedReadsTest, FunctionThatGetsTwoVariablesReadsForItself) {
  StaticGraph graph;
  graph.Arg("n").Arg("v", 1, kHandle).Arg("w", 2, kHandle);
  AddCall(&graph, "one", "F", 1, "n", "v");
  AddCall(&graph, "other", "F", 3, "n", "w");
  graph.Op("both", "AddV2", {"one/return_0", "other/return_0"}).Retval("both");
  AddReader(&graph, "F", "F", 2);
  const Shared shared(graph);
  EXPECT_TRUE(shared.reads.empty());
  EXPECT_FALSE(shared.Node("F/read").is_removed);
}

// A function that is not recursive reads for itself: it is called for each read.
TEST(SharedReadsTest, FunctionOutsideOfRecursionsReadsForItself) {
  StaticGraph graph;
  AddMainOfReader(&graph);
  AddReader(&graph, "F", "G", 2);
  graph.Function("G", {"n"}).Entry("G", "v", 1, kHandle);
  AddRead(&graph, "G/read", "G/v");
  graph.Op("G/sum", "AddV2", {"G/n", "G/read"}).Result("G", "G/sum");
  EXPECT_TRUE(Shared(graph).reads.empty());
}

// G is entered by every frame of F, and reads F's variable then.
TEST(SharedReadsTest, VariableIsFollowedIntoOtherRecursions) {
  StaticGraph graph;
  AddMainOfReader(&graph);
  auto in = [](const std::string& node) { return "F/" + node; };
  graph.Function("F", {"n"}).Entry("F", "v", 1, kHandle).Const(in("one"), 1, {"^" + in("frame_start")});
  graph.Op(in("less"), "Less", {in("n"), in("one")});
  graph.Op(in("sn"), "Switch", {in("n"), in("less")}).Op(in("sv"), "Switch", {in("v"), in("less")}, kHandle);
  graph.Op(in("n1"), "Sub", {in("sn"), in("one")});
  AddCall(&graph, in("call"), "F", 2, in("n1"), in("sv"));
  AddCall(&graph, in("other"), "G", 3, in("n1"), in("sv"));
  graph.Op(in("sum"), "AddV2", {in("call/return_0"), in("other/return_0")}).Kernel(in("base"), {in("sn:1")});
  Merge(&graph, in("merge"), {in("sum"), in("base")}).Result("F", in("merge"));
  AddReader(&graph, "G", "G", 4);
  const Shared shared(graph);
  EXPECT_EQ(shared.reads.size(), 1);
  EXPECT_EQ(shared.Node("G/sum").inputs[1].invariant, kValue);
}

TEST(SharedReadsTest, BodiesWithSideEffectsReadForThemselves) {
  StaticGraph graph;
  AddMainOfReader(&graph);
  AddReader(&graph, "F", "F", 2);
  graph.Kernel("F/effect", {"F/n"}, /*num_outputs=*/1, /*is_stateful=*/true).Result("F", "F/effect", 1);
  EXPECT_TRUE(Shared(graph).reads.empty());
}

// It comes before the call or after it.
TEST(SharedReadsTest, WhatTheMainGraphDoesDoesNotMatter) {
  StaticGraph graph;
  AddMainOfReader(&graph);
  AddReader(&graph, "F", "F", 2);
  graph.Kernel("effect", {"n"}, /*num_outputs=*/1, /*is_stateful=*/true).Retval("effect", 1);
  EXPECT_EQ(Shared(graph).reads.size(), 1);
}

TEST(SharedReadsTest, ChecksDoNotMatter) {
  StaticGraph graph;
  AddMainOfReader(&graph);
  AddReader(&graph, "F", "F", 2);
  const Attrs attrs = {{"T", Types(1, kInt)}, {"summarize", 3}};
  graph.Const("F/holds", true, {"^F/frame_start"}).Node("F/check", "Assert", {"F/holds", "F/n"}, attrs);
  EXPECT_EQ(Shared(graph).reads.size(), 1);
}

// Else the read would be gone, and nobody would tell that the branch was taken.
TEST(SharedReadsTest, ReaderWithoutTokensWaitsForTheBranch) {
  StaticGraph graph;
  AddMainOfReader(&graph);
  BeginRecursion(&graph);
  graph.Kernel("F/twice", {"F/read"}).Kernel("F/base", {"F/sn:1"});
  Merge(&graph, "F/merge", {"F/twice", "F/base"}).Result("F", "F/merge");
  graph.Kernel("F/use", {"F/call/return_0"});
  const Shared shared(graph);
  const FlowNode& twice = shared.Node("F/twice");
  EXPECT_EQ(twice.inputs[0].invariant, kValue);
  ASSERT_EQ(twice.controls.size(), 1);
  EXPECT_EQ(shared.flow.nodes[twice.controls[0].node].kind, OpKind::kBranch);
}

// Merges, results, loops and calls take nothing but tokens.
TEST(SharedReadsTest, MergeTakesTheValueFromAPass) {
  StaticGraph graph;
  AddMainOfReader(&graph);
  BeginRecursion(&graph);
  graph.Kernel("F/base", {"F/sn:1"});
  Merge(&graph, "F/merge", {"F/read", "F/base"}).Result("F", "F/merge");
  graph.Kernel("F/use", {"F/call/return_0"});
  const Shared shared(graph);
  const FlowNode& read = shared.Node("F/read");
  EXPECT_FALSE(read.is_removed);
  EXPECT_EQ(read.kind, OpKind::kPass);
  EXPECT_EQ(read.inputs[0].invariant, kValue);
}

TEST(SharedReadsTest, WhoeverWaitedForAReadWaitsForItsBranch) {
  StaticGraph graph;
  AddMainOfReader(&graph);
  BeginRecursion(&graph);
  graph.Kernel("F/after", {"F/n", "^F/read"}).Kernel("F/base", {"F/sn:1"}).Kernel("F/use", {"F/call/return_0"});
  Merge(&graph, "F/merge", {"F/after", "F/base"}).Result("F", "F/merge");
  const Shared shared(graph);
  EXPECT_TRUE(shared.Node("F/read").is_removed);
  ASSERT_EQ(shared.Node("F/after").controls.size(), 1);
  EXPECT_EQ(shared.flow.nodes[shared.Node("F/after").controls[0].node].kind, OpKind::kBranch);
}

}  // namespace
}  // namespace tensorflow_recursion
