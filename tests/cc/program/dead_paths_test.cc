// SPDX-License-Identifier: Apache-2.0
#include "cc/program/dead_paths.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/cc/program/built_programs.h"

namespace tensorflow_recursion {
namespace {

// What learns that the operator's port `port` is dead; of the number of its ports, that all of them are.
std::vector<DeathEvent> DeathsOf(const Region& region, const Op& op, uint32_t port) {
  const DeathList& list = region.port_deaths[op.port + port];
  return {region.deaths.begin() + list.begin, region.deaths.begin() + list.end};
}

TEST(DeadPathsTest, DeadSidesAreToldToMergesAndSites) {
  const StaticGraph graph = FibGraph();
  const BuiltProgram built = BuildOrFail(graph);
  const Region& fib = RegionOf(built, "Fib");
  const Op& branch = OnlyOp(fib, OpKind::kBranch);
  const uint32_t merge = static_cast<uint32_t>(&OnlyOp(fib, OpKind::kMerge) - fib.ops.data());
  // Not taken: both calls, so their sum, so input 0 of the merge. A call none of whose arguments will
  // ever come needs no telling.
  const std::vector<DeathEvent> not_taken = DeathsOf(fib, branch, 0);
  ASSERT_EQ(not_taken.size(), 1);
  EXPECT_EQ(not_taken[0].op, merge);
  EXPECT_EQ(not_taken[0].index, 0);
  const std::vector<DeathEvent> taken = DeathsOf(fib, branch, 1);
  ASSERT_EQ(taken.size(), 1);
  EXPECT_EQ(taken[0].index, 1);
}

TEST(DeadPathsTest, SitesLearnOfSomeDeadArguments) {
  StaticGraph graph;
  graph.Arg("x").Arg("p", 1, tensorflow::DT_BOOL).Op("switch", "Switch", {"x", "p"});
  graph.Call("main", "F", 1, {"x", "switch:1"}).Retval("main/return_0");
  graph.Function("F", {"a", "b"}).Result("F", "F/a");
  const BuiltProgram built = BuildOrFail(graph);
  const Region& root = built->regions[0];
  const std::vector<DeathEvent> deaths = DeathsOf(root, OnlyOp(root, OpKind::kBranch), 1);
  ASSERT_EQ(deaths.size(), 1);
  EXPECT_EQ(root.ops[deaths[0].op].kind, OpKind::kCallSite);
  EXPECT_EQ(deaths[0].index, 1);
}

TEST(DeadPathsTest, DeadArgumentsAreToldToResults) {
  StaticGraph graph;
  graph.Function("F", {"a", "b"}).Op("F/sum", "AddV2", {"F/a", "F/a"}).Result("F", "F/sum", 0).Result("F", "F/b", 1);
  const BuiltProgram built = BuildOrFail(graph);
  const Region& f = RegionOf(built, "F");
  const std::vector<DeathEvent> deaths = DeathsOf(f, f.ops[f.entries[0]], 0);
  ASSERT_EQ(deaths.size(), 1);
  const Op& told = f.ops[deaths[0].op];
  EXPECT_EQ(told.kind, OpKind::kResult);
  EXPECT_EQ(told.index, 0);
}

TEST(DeadPathsTest, DeadPredicatesAreToldBehindTheirGates) {
  StaticGraph graph;
  graph.Arg("x").Arg("p", 1, tensorflow::DT_BOOL).Op("outer", "Switch", {"x", "p"});
  graph.Op("q", "Less", {"outer:1", "outer:1"}).Op("inner", "Switch", {"x", "q"});
  graph.Node("union", "ControlTrigger", {"^k"}).Kernel("k", {"inner:1"}).Const("one", 1, {"^union"}).Retval("one");
  const BuiltProgram built = BuildOrFail(graph);
  const Region& root = built->regions[0];
  bool is_told = false;
  for (const Op* branch : OpsOf(root, OpKind::kBranch)) {
    for (const DeathEvent& event : DeathsOf(root, *branch, 1)) is_told |= root.ops[event.op].kind == OpKind::kUnion;
  }
  EXPECT_TRUE(is_told);
}

TEST(DeadPathsTest, MergesLearnOfDeadControlsByAUnion) {
  StaticGraph graph;
  graph.Arg("x").Const("no", false).Op("switch", "Switch", {"x", "no"}).Kernel("effect", {"switch:1"}, 1, true);
  graph.Node("merge", "Merge", {"switch", "switch:1", "^effect"}, {{"T", kInt}, {"N", 2}}).Retval("merge");
  const BuiltProgram built = BuildOrFail(graph);
  const Region& root = built->regions[0];
  bool is_told = false;
  for (const DeathEvent& event : DeathsOf(root, OnlyOp(root, OpKind::kBranch), 1)) {
    is_told |= root.ops[event.op].kind == OpKind::kUnion;
  }
  EXPECT_TRUE(is_told);
}

// F(a, b): a merge of two kernels on `a`, one of which reads `b` too.
const Region& TwoWays(BuiltProgram* built) {
  StaticGraph graph;
  graph.Function("F", {"a", "b"}).Kernel("F/one", {"F/a"}).Kernel("F/two", {"F/a", "F/b"});
  Merge(&graph, "F/merge", {"F/one", "F/two"}).Kernel("F/last", {"F/merge"}).Result("F", "F/last");
  *built = BuildOrFail(graph);
  return RegionOf(*built, "F");
}

TEST(DeadPathsTest, AMergeThatLosesAllItsInputsAtOnceIsNotToldOfEachOne) {
  BuiltProgram built;
  const Region& f = TwoWays(&built);
  const std::vector<DeathEvent> deaths = DeathsOf(f, f.ops[f.entries[0]], 0);
  ASSERT_EQ(deaths.size(), 1) << "the result alone: the kernels and the merge only hand the death on";
  EXPECT_EQ(f.ops[deaths[0].op].kind, OpKind::kResult);
}

TEST(DeadPathsTest, AMergeThatKeepsAnInputIsToldWhichOneItLoses) {
  BuiltProgram built;
  const Region& f = TwoWays(&built);
  const std::vector<DeathEvent> deaths = DeathsOf(f, f.ops[f.entries[1]], 0);
  ASSERT_EQ(deaths.size(), 1);
  EXPECT_EQ(f.ops[deaths[0].op].kind, OpKind::kMerge);
  EXPECT_EQ(deaths[0].index, 1);
}

TEST(DeadPathsTest, WhatAMergeLeadsToLearnsWhenAllOfItIsDead) {
  BuiltProgram built;
  const Region& f = TwoWays(&built);
  const Op& merge = OnlyOp(f, OpKind::kMerge);
  const std::vector<DeathEvent> deaths = DeathsOf(f, merge, merge.num_ports);
  ASSERT_EQ(deaths.size(), 1);
  EXPECT_EQ(f.ops[deaths[0].op].kind, OpKind::kResult);
}

TEST(DeadPathsTest, AResultIsToldOnceHoweverManyWaysLeadToIt) {
  StaticGraph graph;
  graph.Function("F", {"a", "b"}).Kernel("F/one", {"F/a"}).Kernel("F/two", {"F/a"});
  graph.Kernel("F/both", {"F/one", "F/two", "F/b"}).Result("F", "F/both");
  const BuiltProgram built = BuildOrFail(graph);
  const Region& f = RegionOf(built, "F");
  EXPECT_EQ(DeathsOf(f, f.ops[f.entries[0]], 0).size(), 1);
}

TEST(DeadPathsTest, WhatCannotDieByItselfHasNoList) {
  StaticGraph graph;
  graph.Function("F", {"a"}).Kernel("F/k", {"F/a"}).Result("F", "F/k");
  const BuiltProgram built = BuildOrFail(graph);
  const Region& f = RegionOf(built, "F");
  EXPECT_TRUE(DeathsOf(f, OnlyOp(f, OpKind::kKernel), 0).empty()) << "it dies with the argument";
}

// f(f(f(... a))): what a call's result kills is told up to the next call, which has a list of its own.
TEST(DeadPathsTest, ListsOfAChainOfCallsAreAsLongAsTheChain) {
  constexpr int kCalls = 50;
  StaticGraph graph;
  graph.Function("F", {"a"});
  std::string last = "F/a";
  for (int i = 0; i < kCalls; ++i) {
    const std::string site = absl::StrCat("F/call", i);
    graph.Call(site, "F", i + 1, {last}).Kernel(site + "_k", {site + "/return_0"});
    last = site + "_k";
  }
  graph.Result("F", last);
  const BuiltProgram built = BuildOrFail(graph);
  const Region& f = RegionOf(built, "F");
  const std::vector<DeathEvent> of_first = DeathsOf(f, *OpsOf(f, OpKind::kCallSite)[0], 0);
  ASSERT_EQ(of_first.size(), 1);
  EXPECT_EQ(f.ops[of_first[0].op].kind, OpKind::kCallSite);
  for (const Op* site : OpsOf(f, OpKind::kCallSite)) {
    EXPECT_EQ(DeathsOf(f, *site, 0).size(), 1);
    EXPECT_EQ(DeathsOf(f, *site, site->num_ports).size(), 1);
  }
}

}  // namespace
}  // namespace tensorflow_recursion
