// SPDX-License-Identifier: Apache-2.0
#include "cc/values/contributions.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "tests/cc/base/graphs.h"
#include "tests/cc/values/contribution_values.h"
#include "tests/cc/values/live_tensors.h"
#include "tests/cc/values/small_stack_threads.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;

class ContributionsTest : public ::testing::Test {
 protected:
  // Contributions of one term, whose tensors are counted.
  Contributions Counted(int32_t number) { return Contributions(Make(number), Make(number)); }

  LiveTensors tensors_;

 private:
  Tensor Make(int32_t number) {
    Value value = tensors_.Make(number);
    Tensor tensor = TensorFromValue(value, kInt);
    value.Release();
    return tensor;
  }
};

TEST_F(ContributionsTest, AreZeroAtFirst) {
  EXPECT_TRUE(Contributions().Terms().empty());
  EXPECT_EQ(Contributions().DebugString(), "Contributions(0 terms)");
}

TEST_F(ContributionsTest, SumsHoldTheTermsOfBoth) {
  const Contributions a = Row(1), b = Row(2), c = Row(3);
  const Contributions sum = Contributions::Sum(Contributions::Sum(a, b), c);
  EXPECT_EQ(sum.Terms(), (std::vector<const Contributions::Term*>{a.Terms()[0], b.Terms()[0], c.Terms()[0]}));
  EXPECT_EQ(Contributions::Sum(a, Contributions::Sum(b, c)).Terms(), sum.Terms());
  EXPECT_EQ(Contributions::Sum(sum, sum).Terms().size(), 6);
}

TEST_F(ContributionsTest, ZeroAddsNothing) {
  const Contributions zero, a = Row(1);
  EXPECT_EQ(Contributions::Sum(zero, a).Terms(), a.Terms());
  EXPECT_EQ(Contributions::Sum(a, zero).Terms(), a.Terms());
  EXPECT_TRUE(Contributions::Sum(zero, zero).Terms().empty());
}

TEST_F(ContributionsTest, CopiesShareTheirTerms) {
  Contributions a = Counted(1);
  Contributions copy = a;
  EXPECT_EQ(tensors_.count(), 2);
  const Contributions moved = std::move(a);
  EXPECT_EQ(moved.Terms(), copy.Terms());
  copy = Contributions();
  EXPECT_EQ(moved.Terms().size(), 1);
  EXPECT_EQ(tensors_.count(), 2);
}

TEST_F(ContributionsTest, AssignmentFreesWhatWasThere) {
  Contributions a = Counted(1);
  a = Counted(2);
  EXPECT_EQ(tensors_.count(), 2);
  const Contributions& same = a;
  a = same;
  EXPECT_EQ(a.Terms().size(), 1);
  a = Contributions();
  EXPECT_EQ(tensors_.count(), 0);
}

TEST_F(ContributionsTest, TermsLiveAsLongAsSomeSumOfThem) {
  Contributions a = Counted(1), b = Counted(2);
  Contributions sum = Contributions::Sum(a, b), larger = Contributions::Sum(sum, a);
  a = b = sum = Contributions();
  EXPECT_EQ(larger.Terms().size(), 3);
  EXPECT_EQ(tensors_.count(), 4);
  larger = Contributions();
  EXPECT_EQ(tensors_.count(), 0);
}

// Recursion adds up depth first, so that a sum leans to one side. What the stack cannot hold would end the process.
TEST_F(ContributionsTest, DeepSumsNeedNoStack) {
  SmallStackThreads threads;
  threads.Schedule([this] {
    for (const bool leans_left : {true, false}) {
      Contributions sum = Counted(0);
      for (int i = 1; i < kDeepForSmallStacks; ++i) {
        const Contributions term = Row(0);
        sum = leans_left ? Contributions::Sum(sum, term) : Contributions::Sum(term, sum);
      }
      EXPECT_EQ(sum.Terms().size(), kDeepForSmallStacks);
      EXPECT_EQ(tensors_.count(), 2);
      sum = Contributions();
      EXPECT_EQ(tensors_.count(), 0);
    }
  });
}

TEST_F(ContributionsTest, MayBeSharedByThreads) {
  const Contributions shared = Contributions::Sum(Counted(1), Counted(2));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([shared] {
      Contributions sum;
      for (int j = 0; j < 1000; ++j) sum = Contributions::Sum(sum, shared);
      EXPECT_EQ(sum.Terms().size(), 2000);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tensors_.count(), 4);
}

}  // namespace
}  // namespace tensorflow_recursion
