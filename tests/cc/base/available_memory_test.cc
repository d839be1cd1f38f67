// SPDX-License-Identifier: Apache-2.0
#include "cc/base/available_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace tensorflow_recursion {
namespace {

constexpr int64_t kMebibyte = 1 << 20;
constexpr int64_t kGibibyte = 1 << 30;

void ExpectLevel(const MemoryLevel& level, int64_t total, int64_t available) {
  EXPECT_EQ(level.total, total);
  EXPECT_EQ(level.available, available);
}

TEST(AvailableMemoryTest, ReadsTheMachines) {
  ExpectLevel(
      MemoryOfMachine("MemTotal:       24684092 kB\nMemFree:         1055552 kB\nMemAvailable:   14236284 kB\n"),
      int64_t{24684092} << 10, int64_t{14236284} << 10);
}

TEST(AvailableMemoryTest, IsUnknownWhereNothingCanBeRead) {
  ExpectLevel(MemoryOfMachine(""), kUnknownMemory, kUnknownMemory);
  ExpectLevel(MemoryOfMachine("MemTotal:  8 kB\nMemAvailable:  many kB\nMemAvailableElse: 8 kB\n"), 8 << 10,
              kUnknownMemory);
  ExpectLevel(MemoryOfGroup("", "", "", "inactive_file"), kUnknownMemory, kUnknownMemory);
  ExpectLevel(MemoryOfGroup("1048576", "", "", "inactive_file"), kUnknownMemory, kUnknownMemory);
}

TEST(AvailableMemoryTest, ReadsAControlGroups) {
  ExpectLevel(MemoryOfGroup("1000\n", "700\n", "inactive_anon 5\ninactive_file 200\nactive_file 7\n", "inactive_file"),
              1000, 500);
  ExpectLevel(MemoryOfGroup("1000\n", "700\n", "inactive_file 1\ntotal_inactive_file 300\n", "total_inactive_file"),
              1000, 600);
  ExpectLevel(MemoryOfGroup("1000", "700", "", "inactive_file"), 1000, 300);
  ExpectLevel(MemoryOfGroup("1000", "1100", "", "inactive_file"), 1000, 0);
  ExpectLevel(MemoryOfGroup("1000", "100", "inactive_file 200\n", "inactive_file"), 1000, 1000);
}

TEST(AvailableMemoryTest, AGroupWithoutALimitIsUnknown) {
  ExpectLevel(MemoryOfGroup("max\n", "700\n", "inactive_file 200\n", "inactive_file"), kUnknownMemory, kUnknownMemory);
}

TEST(AvailableMemoryTest, TheSmallerOneCounts) {
  ExpectLevel(SmallerOf({100, 50}, {80, 60}), 80, 50);
  ExpectLevel(SmallerOf({100, 50}, MemoryLevel()), 100, 50);
  ExpectLevel(SmallerOf(MemoryLevel(), {80, 60}), 80, 60);
  ExpectLevel(SmallerOf(MemoryLevel(), MemoryLevel()), kUnknownMemory, kUnknownMemory);
}

TEST(AvailableMemoryTest, TheReserveIsASixteenthOrLess) {
  EXPECT_EQ(MemoryReserveOf(nullptr, {4 * kGibibyte, kGibibyte}), kGibibyte / 4);
  EXPECT_EQ(MemoryReserveOf("", {64 * kGibibyte, kGibibyte}), 512 * kMebibyte);
  EXPECT_EQ(MemoryReserveOf(nullptr, {kUnknownMemory, kUnknownMemory}), 0);
}

TEST(AvailableMemoryTest, TheReserveMayBeSet) {
  const MemoryLevel level = {4 * kGibibyte, kGibibyte};
  EXPECT_EQ(MemoryReserveOf("3", level), 3 * kMebibyte);
  EXPECT_EQ(MemoryReserveOf("0", level), 0);
  EXPECT_EQ(MemoryReserveOf("3", MemoryLevel()), 0);
  EXPECT_GT(MemoryReserveOf("9000000000000000000", level), std::numeric_limits<int64_t>::max() / 2);
  EXPECT_EQ(MemoryReserveOf("-1", level), kGibibyte / 4);
  EXPECT_EQ(MemoryReserveOf("many", level), kGibibyte / 4);
}

TEST(AvailableMemoryTest, ThisMachineHasSome) {
  const MemoryLevel level = ReadMemoryLevel();
  EXPECT_GT(level.available, 0);
  EXPECT_GE(level.total, level.available);
}

}  // namespace
}  // namespace tensorflow_recursion
