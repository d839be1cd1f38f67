// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/live_arguments.h"

#include <gtest/gtest.h>

#include "tests/cc/analysis/flow.h"

namespace tensorflow_recursion {
namespace {

// F(a, b), called with x and with one side of a switch, calls G with the same.
StaticGraph OneMayBeDead() {
  StaticGraph graph;
  graph.Arg("x").Arg("p", 1, tensorflow::DT_BOOL).Op("switch", "Switch", {"x", "p"});
  graph.Call("main", "F", 1, {"x", "switch"}).Retval("main/return_0");
  graph.Function("F", {"a", "b"}).Call("F/g", "G", 2, {"F/a", "F/b"}).Result("F", "F/g/return_0");
  graph.Function("G", {"a", "b"}).Kernel("G/k", {"G/a", "G/b"}).Result("G", "G/k");
  return graph;
}

TEST(LiveArgumentsTest, FollowsWhatMayBeDeadThroughCalls) {
  const BuiltFlow built(OneMayBeDead());
  ASSERT_TRUE(built.status.ok()) << built.status;
  const auto live = FindLiveArguments(built.flow, built.Order());
  for (const char* function : {"F", "G"}) {
    EXPECT_TRUE(live[built.Find(absl::StrCat(function, "/a"), OpKind::kEntry)]) << function;
    EXPECT_FALSE(live[built.Find(absl::StrCat(function, "/b"), OpKind::kEntry)]) << function;
  }
}

TEST(LiveArgumentsTest, ArgumentsOfOneBranchLiveTogether) {
  StaticGraph graph;
  graph.Arg("x").Arg("p", 1, tensorflow::DT_BOOL).Op("s", "Switch", {"x", "p"}).Op("t", "Switch", {"x", "p"});
  graph.Call("main", "F", 1, {"s", "t"}).Retval("main/return_0");
  graph.Function("F", {"a", "b"}).Kernel("F/k", {"F/a", "F/b"}).Result("F", "F/k");
  const BuiltFlow built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  const auto live = FindLiveArguments(built.flow, built.Order());
  EXPECT_TRUE(live[built.Find("F/a", OpKind::kEntry)]);
  EXPECT_TRUE(live[built.Find("F/b", OpKind::kEntry)]);
}

TEST(LiveArgumentsTest, AConstantLivesWithTheOthers) {
  StaticGraph graph;
  graph.Arg("x").Const("c", 5).Call("main", "F", 1, {"x", "c"}).Retval("main/return_0");
  graph.Function("F", {"a", "b"}).Kernel("F/k", {"F/a", "F/b"}).Result("F", "F/k");
  const BuiltFlow built(graph);
  ASSERT_TRUE(built.status.ok()) << built.status;
  EXPECT_TRUE(FindLiveArguments(built.flow, built.Order())[built.Find("F/b", OpKind::kEntry)]);
}

}  // namespace
}  // namespace tensorflow_recursion
