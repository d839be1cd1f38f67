// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/spread_deciders.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "cc/passes/spread_boundaries.h"
#include "tests/cc/analysis/flow.h"

namespace tensorflow_recursion {
namespace {

// A graph on its devices, and the boundaries of its bodies and calls.
class SpreadDecidersTest : public ::testing::Test {
 protected:
  // F(a, b, c), which the main graph calls.
  static StaticGraph CallOfF() {
    StaticGraph graph;
    graph.Arg("x").Kernel("slow", {"x"}, 1, /*is_stateful=*/true).Call("main", "F", 1, {"x", "slow", "slow"});
    graph.Retval("main/return_0");
    graph.Function("F", {"a", "b", "c"}).Kernel("F/k", {"F/a", "F/b", "F/c"}).Result("F", "F/k");
    return graph;
  }

  void Place(const StaticGraph& graph, const Devices& devices) {
    ASSERT_TRUE(Construct(graph.graph(), &graph_).ok());
    Assign(devices, graph_.get());
    GraphRegions regions;
    ASSERT_TRUE(regions.Build(*graph_).ok());
    boundaries_ = Boundaries();
    ASSERT_TRUE(CollectBoundaries(*graph_, regions, &boundaries_).ok());
  }

  const std::string& DeviceOf(const std::string& node) const { return FindNode(*graph_, node)->assigned_device_name(); }

  BodyPorts& f() { return boundaries_.bodies.at("F"); }

  std::unique_ptr<tensorflow::Graph> graph_;
  Boundaries boundaries_;
};

TEST_F(SpreadDecidersTest, ArgumentsOnOneDeviceAreNotSplit) {
  Place(CallOfF(), {{"", kDeviceA}, {"F/k", kDeviceB}});
  EXPECT_FALSE(HasSplitArguments(boundaries_));
  Place(CallOfF(), {{"", kDeviceA}, {"F/c", kDeviceB}});
  EXPECT_TRUE(HasSplitArguments(boundaries_));
}

TEST_F(SpreadDecidersTest, ArgumentsThatWaitForASideEffectAreLate) {
  Place(CallOfF(), {{"", kDeviceA}});
  const BuiltFlow built(CallOfF());
  ASSERT_TRUE(built.status.ok()) << built.status;
  FindLateArguments(built.flow, &boundaries_);
  EXPECT_EQ(f().late_arguments, (std::set<int64_t>{1, 2}));
}

TEST_F(SpreadDecidersTest, TheDeviceWithMostArgumentsDecides) {
  Place(CallOfF(), {{"", kDeviceA}, {"F/b", kDeviceB}, {"F/c", kDeviceB}});
  ChooseDeciders(&boundaries_);
  EXPECT_EQ(f().decider, kDeviceB);
}

TEST_F(SpreadDecidersTest, AnArgumentInTimeCountsForMoreThanAllLateOnes) {
  Place(CallOfF(), {{"", kDeviceA}, {"F/b", kDeviceB}, {"F/c", kDeviceB}});
  f().late_arguments = {1, 2};
  ChooseDeciders(&boundaries_);
  EXPECT_EQ(f().decider, kDeviceA);
}

TEST_F(SpreadDecidersTest, AFunctionWithoutArgumentsIsDecidedWhereItsFrameStarts) {
  Place(CallOfF(), {{"", kDeviceA}, {"F/frame_start", kDeviceB}});
  f().entries.clear();
  ChooseDeciders(&boundaries_);
  EXPECT_EQ(f().decider, kDeviceB);
}

TEST_F(SpreadDecidersTest, CallsAndReturnsMoveToTheirEntriesAndResults) {
  Place(CallOfF(), {{"", kDeviceA}, {"F/b", kDeviceB}, {"F/result", kDeviceB}});
  f().entries.erase(2);  // nobody reads the last argument
  f().decider = kDeviceB;
  AlignCalls(&boundaries_);
  EXPECT_EQ(DeviceOf("main/call_0"), kDeviceA);
  EXPECT_EQ(DeviceOf("main/call_1"), kDeviceB);
  EXPECT_EQ(DeviceOf("main/call_2"), kDeviceB) << "goes to the device that decides";
  EXPECT_EQ(DeviceOf("main/return_0"), kDeviceB);
}

}  // namespace
}  // namespace tensorflow_recursion
