// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/stock_kernel_runner.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tensorflow_recursion {
namespace {

using Entry = KernelTable::Entry;

// The first lookup of rows is the stock kernel's and copies the variable, so that it takes a millisecond. All others
// are native.
TEST(KernelTimeTest, NativeRunsMakeUpForASlowStockRun) {
  Entry entry;
  entry.NoteTime(1'000'000);
  ASSERT_EQ(entry.nanoseconds.load(), 1'000'000);
  for (int run = 0; run < 100; ++run) entry.NoteNativeRun();
  EXPECT_LE(entry.nanoseconds.load(), 3'000);
}

TEST(KernelTimeTest, NativeRunsAreNotMeasured) {
  Entry entry;
  entry.NoteNativeRun();
  EXPECT_EQ(entry.nanoseconds.load(), int64_t{Entry::kUnmeasured});
}

TEST(KernelTimeTest, NativeRunsLeaveACheapStockRunAsItIs) {
  Entry entry;
  entry.NoteTime(1'000);
  entry.NoteNativeRun();
  EXPECT_EQ(entry.nanoseconds.load(), 1'000);
}

}  // namespace
}  // namespace tensorflow_recursion
