// SPDX-License-Identifier: Apache-2.0
#include "cc/values/record_layout.h"

#include <gtest/gtest.h>

#include "cc/values/scalar_operators.h"
#include "tests/cc/values/numbers.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_BOOL;
using tensorflow::DT_FLOAT;
using tensorflow::DT_INT32;
using tensorflow::DT_STRING;
using tensorflow::DT_VARIANT;
using tensorflow::Tensor;

class RecordLayoutTest : public ::testing::Test {
 protected:
  static RecordLayout Layout(const tensorflow::DataTypeVector& types) { return RecordLayout({"retain", "F", types}); }
};

TEST_F(RecordLayoutTest, MayHoldNumbersAndRecords) {
  EXPECT_TRUE(RecordLayout::MayHold(DT_BOOL));
  EXPECT_TRUE(RecordLayout::MayHold(DT_FLOAT));
  EXPECT_TRUE(RecordLayout::MayHold(DT_VARIANT));
  EXPECT_FALSE(RecordLayout::MayHold(DT_STRING));
}

// More values than one word has tags.
TEST_F(RecordLayoutTest, MakesRecordsAsTheExecutorDoes) {
  const RecordLayout layout =
      Layout({DT_INT32, DT_VARIANT, DT_INT32, DT_INT32, DT_INT32, DT_INT32, DT_INT32, DT_INT32, DT_INT32, DT_VARIANT});
  Record* made = layout.New();
  Record* set = Record::New(10);
  for (uint32_t i = 0; i < 10; ++i) {
    const bool is_record = i == 1 || i == 9;
    made->set_bits(i, is_record ? 0 : ToBits(static_cast<int32_t>(i)));
    const Value nothing = Value::Own(static_cast<Record*>(nullptr));
    set->Set(i, is_record ? nothing : Number(static_cast<int>(i)), is_record ? DT_VARIANT : DT_INT32);
  }
  EXPECT_TRUE(layout.IsOf(*made));
  EXPECT_TRUE(layout.IsOf(*set));
  EXPECT_EQ(made->Get(8).int32, 8);
  EXPECT_EQ(set->bits(8), made->bits(8));
  EXPECT_EQ(made->Get(9).kind, Value::Kind::kRecord);
  EXPECT_EQ(made->Get(9).record, nullptr);
  made->Unref();
  set->Unref();
}

TEST_F(RecordLayoutTest, OtherTypesAreAnotherLayout) {
  Record* record = Layout({DT_INT32, DT_FLOAT}).New();
  EXPECT_FALSE(Layout({DT_INT32}).IsOf(*record));
  EXPECT_FALSE(Layout({DT_INT32, DT_INT32}).IsOf(*record));
  EXPECT_FALSE(Layout({DT_INT32, DT_FLOAT, DT_FLOAT}).IsOf(*record));
  EXPECT_EQ(Layout({DT_INT32, DT_INT32}).Find(record), nullptr);
  record->Unref();
}

TEST_F(RecordLayoutTest, ATensorIsAnotherLayout) {
  Record* record = Record::New(1);
  record->Set(0, Value::Own(NewTensor(Tensor(DT_FLOAT, tensorflow::TensorShape({2})))), DT_FLOAT);
  EXPECT_FALSE(Layout({DT_FLOAT}).IsOf(*record));
  EXPECT_EQ(Layout({DT_FLOAT}).Find(record), nullptr);
  record->Unref();
}

TEST_F(RecordLayoutTest, ARecordWithoutValuesStandsForZeros) {
  const RecordLayout layout = Layout({DT_FLOAT, DT_VARIANT});
  Record* empty = Record::New(0);
  EXPECT_FALSE(layout.IsOf(*empty));
  const Record* zeros = layout.Find(empty);
  ASSERT_NE(zeros, nullptr);
  EXPECT_EQ(zeros->bits(0), 0);
  ASSERT_NE(zeros->Get(1).record, nullptr);
  EXPECT_EQ(zeros->Get(1).record->size(), 0);
  empty->Unref();
}

TEST_F(RecordLayoutTest, NoRecordIsOfNone) { EXPECT_EQ(Layout({DT_FLOAT}).Find(nullptr), nullptr); }

// What a branch not taken leaves in a record goes through frames and out of them.
TEST_F(RecordLayoutTest, NoRecordIsAValue) {
  Value nothing = Value::Own(static_cast<Record*>(nullptr));
  Value copy = nothing.Copy();
  const Tensor boxed = TensorFromValue(nothing, DT_VARIANT);
  EXPECT_EQ(boxed.dims(), 0);
  EXPECT_TRUE(boxed.scalar<tensorflow::Variant>()().is_empty());
  Record* found = nullptr;
  EXPECT_FALSE(FindRecord(nothing, {"recall", "F", {DT_FLOAT}}, &found).ok());
  nothing.Release();
  copy.Release();
}

}  // namespace
}  // namespace tensorflow_recursion
