// SPDX-License-Identifier: Apache-2.0
#include "cc/base/ids.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

namespace tensorflow_recursion {
namespace {

static_assert(sizeof(SlotId) == sizeof(uint32_t));
static_assert(std::is_trivially_copyable_v<SlotId>);
static_assert(std::is_standard_layout_v<SlotId>);
static_assert(!std::is_assignable_v<SlotId&, PortId>);
static_assert(!std::is_assignable_v<SlotId&, int>);
static_assert(!std::is_constructible_v<SlotId, PortId> || !std::is_convertible_v<PortId, SlotId>);
static_assert(std::is_convertible_v<SlotId, uint32_t>);

TEST(IdTest, IsNoneUntilItIsSet) {
  SlotId slot;
  EXPECT_EQ(slot, kNone);
  slot = SlotId(3);
  EXPECT_NE(slot, kNone);
  EXPECT_EQ(slot, SlotId(3));
  slot = kNone;
  EXPECT_EQ(slot, SlotId());
}

TEST(IdTest, IsOrderedByItsNumberWithNoneAtTheEnd) {
  EXPECT_LT(NodeId(1), NodeId(2));
  EXPECT_LT(NodeId(2), NodeId());
}

TEST(IdVectorTest, NumbersWhatIsAdded) {
  IdVector<NodeId, std::string> names;
  EXPECT_TRUE(names.empty());
  EXPECT_EQ(names.Add("a"), NodeId(0));
  EXPECT_EQ(names.Add("b"), NodeId(1));
  EXPECT_EQ(names[NodeId(1)], "b");
}

TEST(IdVectorTest, VisitsThoseThatThereWere) {
  IdVector<NodeId, int> numbers(2, 5);
  for (NodeId id : numbers.ids()) numbers.Add(numbers[id]);
  EXPECT_EQ(numbers.size(), 4);
}

}  // namespace
}  // namespace tensorflow_recursion
