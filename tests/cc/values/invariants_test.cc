// SPDX-License-Identifier: Apache-2.0
#include "cc/values/invariants.h"

#include <gtest/gtest.h>

#include "tests/cc/values/live_tensors.h"
#include "tests/cc/values/numbers.h"

namespace tensorflow_recursion {
namespace {

TEST(InvariantsTest, AreReadAsOftenAsOneLikes) {
  LiveTensors live;
  const tensorflow::Tensor constant(3.0F);
  const Value values[] = {Number(7), live.Make(5), Value::Constant(&constant), Value::Borrow(&constant)};
  const tensorflow::Tensor* const tensor = values[1].tensor;
  Invariants* const invariants = Invariants::New(values, 4);
  EXPECT_EQ(invariants->size(), 4);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(invariants->Get(0).int32, 7);
    EXPECT_EQ(invariants->Get(1).kind, Value::Kind::kBorrowed);
    EXPECT_EQ(invariants->Get(1).constant, tensor);
    EXPECT_EQ(invariants->Get(2).constant, &constant);
    EXPECT_EQ(invariants->Get(3).constant, &constant);
  }
  EXPECT_EQ(live.count(), 1);
  Invariants::Delete(invariants);
  EXPECT_EQ(live.count(), 0);
}

TEST(InvariantsTest, AValueThatOwnsThemReleasesThem) {
  LiveTensors live;
  const Value tensor = live.Make(5);
  Value owner = Value::Own(Invariants::New(&tensor, 1));
  EXPECT_TRUE(owner.owns());
  EXPECT_EQ(live.count(), 1);
  owner.Release();
  EXPECT_EQ(live.count(), 0);
}

TEST(InvariantsTest, KeepTheResultsThatComeFirst) {
  LiveTensors live;
  Value values[] = {live.Make(5)};
  Invariants* const invariants = Invariants::New(values, 1, 3);
  EXPECT_FALSE(invariants->HasResults(0));
  EXPECT_FALSE(invariants->HasResults(2));
  for (const int number : {7, 8}) {
    Value results[] = {live.Make(number), invariants->Get(0)};
    invariants->KeepResults(0, results, 2);
    results[0].Release();
  }
  Value missing = Value::Empty();
  invariants->KeepResults(2, &missing, 1);
  EXPECT_TRUE(invariants->HasResults(0));
  EXPECT_FALSE(invariants->HasResults(2));
  Value first = invariants->GetResult(0);
  Value second = invariants->GetResult(1);
  EXPECT_EQ(LiveTensors::Number(first), 7);
  EXPECT_TRUE(second.owns());  // it may leave the frames
  first.Release();
  Invariants::Delete(invariants);
  EXPECT_EQ(live.count(), 1);
  EXPECT_EQ(LiveTensors::Number(second), 5);
  second.Release();
  EXPECT_EQ(live.count(), 0);
}

}  // namespace
}  // namespace tensorflow_recursion
