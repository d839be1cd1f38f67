// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/argument_trace.h"

#include <gtest/gtest.h>

#include "tests/cc/analysis/flow.h"

namespace tensorflow_recursion {
namespace {

ArgumentTrace TraceInput(const BuiltFlow& built, const std::string& kernel) {
  return TraceArgument(built.flow, built[built.Kernel(kernel)].inputs[0].source);
}

StaticGraph Traced() {
  StaticGraph graph;
  AddMain(&graph, "F", 2);
  graph.Function("F", {"a", "b"}).Op("F/less", "Less", {"F/a", "F/b"});
  graph.Op("F/switch", "Switch", {"F/b", "F/less"}).Op("F/same", "Identity", {"F/switch:1"});
  graph.Kernel("F/k", {"F/same"}).Kernel("F/l", {"F/k"}).Kernel("F/m", {"F/b"}).Result("F", "F/l");
  graph.Op("F/held", "Switch", {"F/b", "F/less", "^F/m"}).Kernel("F/o", {"F/held"});
  graph.Op("F/after", "Identity", {"F/b", "^F/m"}).Kernel("F/q", {"F/after"});
  return graph;
}

TEST(ArgumentTraceTest, GoesThroughSwitches) {
  const BuiltFlow built(Traced());
  ASSERT_TRUE(built.status.ok()) << built.status;
  const ArgumentTrace trace = TraceInput(built, "F/k");
  EXPECT_EQ(trace.entry, built.Find("F/b", OpKind::kEntry));
  ASSERT_EQ(trace.guards.size(), 1);
  EXPECT_EQ(built[trace.guards[0].node].kind, OpKind::kBranch);
  EXPECT_EQ(trace.guards[0].port, 1);
  EXPECT_EQ(trace.between, std::vector<NodeId>{built.Find("F/switch", OpKind::kSwitch)});
}

TEST(ArgumentTraceTest, StopsAtWhatComputes) {
  const BuiltFlow built(Traced());
  EXPECT_FALSE(TraceInput(built, "F/l").is_argument());
}

TEST(ArgumentTraceTest, StopsAtSwitchesThatWait) {
  const BuiltFlow built(Traced());
  EXPECT_FALSE(TraceInput(built, "F/o").is_argument());
}

TEST(ArgumentTraceTest, WhatAnIdentityWaitsForIsAGuard) {
  const BuiltFlow built(Traced());
  const ArgumentTrace trace = TraceInput(built, "F/q");
  EXPECT_EQ(trace.entry, built.Find("F/b", OpKind::kEntry));
  ASSERT_EQ(trace.guards.size(), 1);
  EXPECT_EQ(trace.guards[0].node, built.Kernel("F/m"));
}

TEST(ArgumentTraceTest, AnArgumentReadAsItComesHasNoGuards) {
  const BuiltFlow built(Traced());
  const ArgumentTrace trace = TraceInput(built, "F/m");
  EXPECT_TRUE(trace.is_argument());
  EXPECT_TRUE(trace.guards.empty());
  EXPECT_TRUE(trace.between.empty());
}

}  // namespace
}  // namespace tensorflow_recursion
