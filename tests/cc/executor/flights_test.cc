// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/flights.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace tensorflow_recursion {
namespace {

using Way = KernelInFlight::Way;

TEST(FlightsTest, AllCountButOnlyThoseThatAreNotSpreadMakeMany) {
  Flights flights;
  for (int64_t i = 0; i < Flights::kFirstLimit; ++i) flights.Begin(Way::kSpread);
  EXPECT_EQ(flights.count(), Flights::kFirstLimit);
  EXPECT_FALSE(flights.are_many());
  for (int64_t i = 0; i < Flights::kFirstLimit; ++i) flights.Begin(i % 2 == 0 ? Way::kAsynchronous : Way::kOffloaded);
  EXPECT_TRUE(flights.are_many());
  flights.End(Way::kAsynchronous);
  EXPECT_FALSE(flights.are_many());
  EXPECT_EQ(flights.count(), 2 * Flights::kFirstLimit - 1);
}

TEST(FlightsTest, TwiceAsManyMayBeUnderWayWhenAnswersDoNotCome) {
  Flights flights;
  for (int64_t i = 0; i < Flights::kFirstLimit; ++i) flights.Begin(Way::kAsynchronous);
  flights.AllowMore();
  for (int64_t i = 1; i < Flights::kFirstLimit; ++i) flights.Begin(Way::kAsynchronous);
  EXPECT_FALSE(flights.are_many());
  flights.Begin(Way::kAsynchronous);
  EXPECT_TRUE(flights.are_many());
}

TEST(FlightsTest, AKernelThatHasLandedIsUsedAgainWithoutWhatItHeld) {
  Flights flights;
  std::unique_ptr<KernelInFlight> kernel = flights.NewKernel();
  KernelInFlight* const memory = kernel.get();
  kernel->inputs.push_back(Value::Empty());
  kernel->next = flights.NewKernel();
  KernelInFlight* const follower = kernel->next.get();
  EXPECT_EQ(flights.Recycle(std::move(kernel)).get(), follower);
  const std::unique_ptr<KernelInFlight> again = flights.NewKernel();
  EXPECT_EQ(again.get(), memory);
  EXPECT_TRUE(again->inputs.empty());
  EXPECT_EQ(again->next, nullptr);
}

}  // namespace
}  // namespace tensorflow_recursion
