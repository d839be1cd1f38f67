// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/placement.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/cc/base/graphs.h"

namespace tensorflow_recursion {
namespace {

TEST(PlacementTest, AnAssignedDeviceCountsBeforeARequestedOne) {
  std::unique_ptr<tensorflow::Graph> graph;
  ASSERT_TRUE(Construct(GraphBuilder().Const("x").graph(), &graph).ok());
  tensorflow::Node* const node = FindNode(*graph, "x");
  EXPECT_EQ(DeviceOf(*node), "");
  node->set_requested_device(kDeviceB);
  EXPECT_EQ(DeviceOf(*node), kDeviceB);
  node->set_assigned_device_name(kDeviceA);
  EXPECT_EQ(DeviceOf(*node), kDeviceA);
}

}  // namespace
}  // namespace tensorflow_recursion
