// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/kept_results.h"

#include <gtest/gtest.h>

#include <string>

#include "cc/analysis/keep_invariants.h"
#include "cc/analysis/superfluous_waits.h"
#include "tests/cc/analysis/flow.h"
#include "tests/cc/analysis/invariant_graphs.h"

namespace tensorflow_recursion {
namespace {

// What becomes of a graph as a program is built of it.
BuiltFlow Build(const StaticGraph& graph) {
  BuiltFlow built(graph);
  EXPECT_TRUE(built.status.ok()) << built.status;
  EXPECT_TRUE(DropSuperfluousWaits(&built.flow).ok());
  EXPECT_TRUE(KeepInvariants({}, &built.flow).ok());
  EXPECT_TRUE(FindKeptResults(&built.flow).ok());
  return built;
}

const KernelNode& KernelOf(const BuiltFlow& built, const std::string& name) {
  for (const KernelNode& kernel : built.flow.kernels) {
    if (kernel.name == name) return kernel;
  }
  ADD_FAILURE() << "no kernel " << name;
  return built.flow.kernels[0];
}

bool IsKept(const BuiltFlow& built, const std::string& name) { return KernelOf(built, name).kept_results != kNone; }

// F(n, w) = ... if n < 1 else ..., with a call F(n - 1, w) on the other side, where F/sn and F/sw are n and w.
StaticGraph Recursion() {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"n", "w"}).Const("F/one", 1, {"^F/frame_start"}).Op("F/less", "Less", {"F/n", "F/one"});
  graph.Op("F/sn", "Switch", {"F/n", "F/less"}).Op("F/sw", "Switch", {"F/w", "F/less"});
  graph.Op("F/n1", "Sub", {"F/sn", "F/one"}).Call("F/call", "F", 2, {"F/n1", "F/sw"});
  return graph;
}

void Finish(StaticGraph* graph, const std::string& result) {
  graph->Op("F/sum", "AddV2", {"F/call/return_0", result});
  Merge(graph, "F/merge", {"F/sum", "F/sn:1"}).Result("F", "F/merge");
}

TEST(KeptResultsTest, AreMadeOfInvariantsConstantsAndOneAnother) {
  StaticGraph graph = Recursion();
  graph.Op("F/square", "Mul", {"F/sw", "F/sw"}).Op("F/next", "AddV2", {"F/square", "F/one"});
  graph.Op("F/changes", "Mul", {"F/next", "F/sn"});
  Finish(&graph, "F/changes");
  const BuiltFlow built = Build(graph);
  EXPECT_TRUE(IsKept(built, "F/square"));
  EXPECT_TRUE(IsKept(built, "F/next"));
  EXPECT_NE(KernelOf(built, "F/square").kept_results, KernelOf(built, "F/next").kept_results);
  EXPECT_FALSE(IsKept(built, "F/changes"));
  EXPECT_FALSE(IsKept(built, "F/n1"));
  ASSERT_EQ(built.flow.recursions.size(), 1);
  EXPECT_EQ(built.flow.recursions[0].num_kept_results, 2);
}

TEST(KeptResultsTest, GoThroughBranches) {
  StaticGraph graph = Recursion();
  graph.Op("F/square", "Mul", {"F/w", "F/w"}).Op("F/sq", "Switch", {"F/square", "F/less"});
  graph.Op("F/cube", "Mul", {"F/sq", "F/sw"});
  Finish(&graph, "F/cube");
  const BuiltFlow built = Build(graph);
  EXPECT_TRUE(IsKept(built, "F/square"));
  EXPECT_TRUE(IsKept(built, "F/cube"));
}

// The recursion has other invariants, so F's frames share nothing of what the main graph or G computes.
TEST(KeptResultsTest, AreThoseOfRecursions) {
  StaticGraph graph = Recursion();
  graph.Op("once", "Mul", {"F/w", "F/w"});
  graph.Call("F/g", "G", 3, {"F/sw"});
  Finish(&graph, "F/g/return_0");
  graph.Function("G", {"v"}).Op("G/square", "Mul", {"G/v", "G/v"}).Result("G", "G/square");
  EXPECT_FALSE(IsKept(Build(graph), "G/square"));
}

// The same constant is computed by stock optimizers, unless it is too large to be kept.
TEST(KeptResultsTest, AreNotOfConstantsAlone) {
  StaticGraph graph = Recursion();
  graph.Op("F/two", "AddV2", {"F/one", "F/one"});
  Finish(&graph, "F/two");
  EXPECT_FALSE(IsKept(Build(graph), "F/two"));
}

TEST(KeptResultsTest, AreNotOfOperatorsThatMayDoSomethingElseTheNextTime) {
  StaticGraph graph = Recursion();
  graph.Node("F/random", "RandomUniformInt", {"F/sw", "F/sw", "F/one"}, {{"T", kInt}, {"Tout", kInt}});
  Finish(&graph, "F/random");
  EXPECT_FALSE(IsKept(Build(graph), "F/random"));
}

// TensorFlow calls it stateless.
TEST(KeptResultsTest, AreNotOfFiles) {
  StaticGraph graph = Recursion();
  graph.Node("F/name", "AsString", {"F/sw"}, {{"T", kInt}}).Node("F/read", "ReadFile", {"F/name"});
  graph.Node("F/length", "StringLength", {"F/read"});
  Finish(&graph, "F/length");
  const BuiltFlow built = Build(graph);
  EXPECT_TRUE(IsKept(built, "F/name"));
  EXPECT_FALSE(IsKept(built, "F/read"));
  EXPECT_FALSE(IsKept(built, "F/length"));
}

TEST(KeptResultsTest, AreNotWhereTensorsAreChangedInPlace) {
  StaticGraph graph = Recursion();
  graph.Op("F/square", "Mul", {"F/sw", "F/sw"});
  graph.Node("F/changed", "InplaceAdd", {"F/square", "F/one", "F/one"}, {{"T", kInt}});
  Finish(&graph, "F/changed");
  EXPECT_FALSE(IsKept(Build(graph), "F/square"));
}

}  // namespace
}  // namespace tensorflow_recursion
