// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/pruning.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::GraphDef;

// w, x -> y -> z, and a node that waits for x.
GraphDef Chain() {
  GraphBuilder builder;
  builder.Const("w").Const("x").Call("y", "F", {"x"}).Node("z", "Identity", {"y"}, {{"T", kInt}});
  return builder.Node("after", "NoOp", {"^x"}).Function(Endless("F", "F")).graph();
}

Inputs NamesIn(const GraphDef& graph) {
  Inputs names;
  for (const auto& node : graph.node()) names.push_back(node.name());
  return names;
}

TEST(PrunerTest, KeepsWhatRootsNeedInTheGraphsOrder) {
  const GraphDef graph = Chain();
  Pruner pruner(graph);
  ASSERT_TRUE(pruner.Index().ok());
  GraphDef kept;
  ASSERT_TRUE(pruner.Keep({{"z", {}}}, &kept).ok());
  EXPECT_EQ(NamesIn(kept), (Inputs{"x", "y", "z"}));
  EXPECT_EQ(kept.library().function_size(), 1);
  GraphDef waiting;
  ASSERT_TRUE(pruner.Keep({{"after", {}}}, &waiting).ok());
  EXPECT_EQ(NamesIn(waiting), (Inputs{"x", "after"}));
}

TEST(PrunerTest, KeepsArgumentsThatOnlyALoopReadsWhoseResultsNobodyReads) {
  GraphBuilder builder;
  builder.Node("unread", "_Arg", {}, {{"T", kInt}, {"index", 0}}).Const("x");
  builder.Node("merge", "Merge", {"unread", "next"}, {{"T", kInt}, {"N", 2}});
  const GraphDef graph = builder.Node("next", "NextIteration", {"merge"}, {{"T", kInt}}).graph();
  Pruner pruner(graph);
  ASSERT_TRUE(pruner.Index().ok());
  GraphDef kept;
  ASSERT_TRUE(pruner.Keep({{"x", {}}}, &kept).ok());
  EXPECT_EQ(NamesIn(kept), (Inputs{"unread", "x"}));
}

TEST(PrunerTest, FindsNodesByName) {
  const GraphDef graph = Chain();
  Pruner pruner(graph);
  ASSERT_TRUE(pruner.Index().ok());
  EXPECT_TRUE(pruner.Has("w"));
  EXPECT_FALSE(pruner.Has("v"));
  EXPECT_EQ(pruner.Find("y").op(), kInvokeOp);
}

absl::Status Read(const Inputs& fetches, const Inputs& feeds, CallProgram* program) {
  const GraphDef graph = Chain();
  Pruner pruner(graph);
  EXPECT_TRUE(pruner.Index().ok());
  return ReadFetches(graph, pruner, fetches, feeds, program);
}

TEST(ReadFetchesTest, TellsOutputsFromNodes) {
  CallProgram program;
  ASSERT_TRUE(Read({"y:0", "z", "^x"}, {}, &program).ok());
  EXPECT_EQ(program.fetches.at("y").outputs, std::set<int>{0});
  EXPECT_FALSE(program.fetches.at("y").whole);
  EXPECT_TRUE(program.fetches.at("z").whole);
  EXPECT_TRUE(program.fetches.at("x").whole);
  EXPECT_EQ(program.fetches.size(), 3);
}

TEST(ReadFetchesTest, WithoutFetchesEveryNodeCounts) {
  CallProgram program;
  ASSERT_TRUE(Read({}, {}, &program).ok());
  EXPECT_EQ(program.fetches.size(), 5);
}

TEST(ReadFetchesTest, FedNodesKeepAllTheirOutputs) {
  CallProgram program;
  ASSERT_TRUE(Read({"z:0"}, {"y:0", "pruned:0"}, &program).ok());
  EXPECT_TRUE(program.fetches.at("y").whole);
  EXPECT_EQ(program.feeds, (std::unordered_set<std::string>{"y"}));
}

TEST(ReadFetchesTest, ReportsOutputsThatACallDoesNotHave) {
  CallProgram program;
  const absl::Status status = Read({"y:1"}, {}, &program);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(status.message(), "no such output")) << status;
}

}  // namespace
}  // namespace tensorflow_recursion
