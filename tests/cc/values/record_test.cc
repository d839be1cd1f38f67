// SPDX-License-Identifier: Apache-2.0
#include "cc/values/record.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tests/cc/values/live_tensors.h"
#include "tests/cc/values/numbers.h"
#include "tests/cc/values/small_stack_threads.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DT_FLOAT;
using tensorflow::DT_INT32;
using tensorflow::DT_VARIANT;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::Variant;

Tensor VariantTensor(Variant variant) {
  Tensor tensor(DT_VARIANT, TensorShape({}));
  tensor.scalar<Variant>()() = std::move(variant);
  return tensor;
}

class RecordTest : public ::testing::Test {
 protected:
  ~RecordTest() override {
    EXPECT_EQ(live_.count(), 0);
    EXPECT_EQ(Record::LiveCount(), 0);
  }

  // Makes a record of a number, a tensor and, unless null, another record, whose reference it takes over.
  Record* Make(int number, Record* inner = nullptr) {
    Record* record = Record::New(inner == nullptr ? 2 : 3);
    record->Set(0, Number(number), DT_INT32);
    record->Set(1, live_.Make(number), DT_INT32);
    if (inner != nullptr) record->Set(2, Value::Own(inner), DT_VARIANT);
    return record;
  }

  LiveTensors live_;
};

TEST_F(RecordTest, HoldsValuesInNineBytesEach) {
  Record* record = Make(7, Make(8));
  EXPECT_EQ(Record::LiveCount(), 2);
  EXPECT_EQ(Record::BytesOf(3), 8 + 3 * 9 + 5);
  EXPECT_EQ(Record::BytesOf(2), 8 + 2 * 9 + 6);
  EXPECT_EQ(record->size(), 3u);
  EXPECT_EQ(record->Get(0).int32, 7);
  EXPECT_EQ(LiveTensors::Number(record->Get(1)), 7);
  EXPECT_EQ(record->Get(2).record->Get(0).int32, 8);
  record->Unref();
}

TEST_F(RecordTest, EndsWithItsLastReference) {
  Record* record = Make(7);
  EXPECT_TRUE(record->IsUnshared());
  Value value = Value::Own(record);
  Value copy = value.Copy();
  EXPECT_TRUE(copy.owns());
  EXPECT_FALSE(record->IsUnshared());
  value.Release();
  EXPECT_EQ(Record::LiveCount(), 1);
  EXPECT_EQ(live_.count(), 1);
  copy.Release();
  EXPECT_TRUE(copy.is_empty());
}

TEST_F(RecordTest, OwnsWhatItKeepsOfConstantsAndBorrowedTensors) {
  Record* record = Record::New(3);
  {
    Value owned = live_.Make(5);
    const Tensor constant(2.5f);
    record->Set(0, Value::Borrow(owned.tensor), DT_INT32);
    record->Set(1, Value::Constant(owned.tensor), DT_INT32);
    record->Set(2, Value::Constant(&constant), DT_FLOAT);
    owned.Release();
  }
  EXPECT_EQ(LiveTensors::Number(record->Get(0)), 5);
  EXPECT_EQ(LiveTensors::Number(record->Get(1)), 5);
  EXPECT_EQ(TensorFromValue(record->Get(2), DT_FLOAT).scalar<float>()(), 2.5f);
  record->Unref();
}

TEST_F(RecordTest, ReadsReferencesToVariables) {
  std::remove_pointer_t<decltype(tensorflow::TensorValue::mutex_if_ref)> mutex;
  Tensor variable(DT_INT32, TensorShape({1}));
  variable.flat<int32_t>()(0) = 3;
  Record* record = Record::New(1);
  record->Set(0, Value::Ref(tensorflow::TensorValue(&mutex, &variable)), DT_INT32);
  EXPECT_EQ(record->Get(0).kind, Value::Kind::kTensor);
  EXPECT_EQ(LiveTensors::Number(record->Get(0)), 3);
  record->Unref();
}

// On a stack that would hold a quarter of a byte for each.
TEST_F(RecordTest, EndsChainsOfAMillionWithoutStack) {
  enum class Link { kValue, kTensor, kVector, kShared };
  for (const Link link : {Link::kValue, Link::kTensor, Link::kVector, Link::kShared}) {
    SmallStackThreads threads;
    threads.Schedule([&] {
      Record* chain = Record::New(0);
      std::vector<Tensor> held;
      for (int i = 1; i < kDeep; ++i) {
        Value inner = Value::Own(chain);
        if (link != Link::kValue) {
          auto* tensor = new Tensor(DT_VARIANT, link == Link::kVector ? TensorShape({2}) : TensorShape({}));
          tensor->flat<Variant>()(0) = RecordVariant(chain);
          inner = Value::Own(tensor);
          // The last owner of the buffer is then not the record that the chain passes through.
          if (link == Link::kShared && i % 2 == 0) held.push_back(*tensor);
        }
        chain = Record::New(1);
        chain->Set(0, inner, DT_VARIANT);
      }
      EXPECT_EQ(Record::LiveCount(), kDeep);
      chain->Unref();
      held.clear();
    });
  }
}

TEST_F(RecordTest, CountsRecordsOfThreadsThatHaveEnded) {
  Record* record = nullptr;
  std::thread([&] { record = Make(1); }).join();
  EXPECT_EQ(Record::LiveCount(), 1);
  std::thread([&] { record->Unref(); }).join();
  EXPECT_EQ(Record::LiveCount(), 0);
}

TEST_F(RecordTest, IsSharedByManyThreads) {
  Record* record = Make(1, Make(2));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    record->Ref();
    threads.emplace_back([record] {
      for (int j = 0; j < 10'000; ++j) {
        Value inner = record->Get(2).Copy();
        EXPECT_EQ(inner.record->Get(0).int32, 2);
        inner.Release();
      }
      record->Unref();
    });
  }
  record->Unref();
  for (std::thread& thread : threads) thread.join();
}

TEST_F(RecordTest, TravelsInAVariant) {
  Value value = Value::Own(Make(7));
  {
    const Tensor tensor = TensorFromValue(value, DT_VARIANT);
    EXPECT_EQ(RecordInTensor(tensor), value.record);
    const Tensor copy = tensor;  // NOLINT(performance-unnecessary-copy-initialization): the record is shared
    const Variant variant = tensor.scalar<Variant>()();
    value.Release();
    EXPECT_EQ(Record::LiveCount(), 1);
    EXPECT_EQ(RecordInTensor(copy)->Get(0).int32, 7);
    EXPECT_EQ(variant.DebugString(), "Variant<type: tensorflow_recursion::Record value: Record<2 values>>");
  }
  EXPECT_EQ(RecordVariant().DebugString(), "Record<none>");
}

TEST_F(RecordTest, IsEmptyInAnotherProcess) {
  tensorflow::TensorProto proto;
  {
    Record* record = Make(7);
    BoxRecord(record).AsProtoTensorContent(&proto);
    record->Unref();
  }
  Tensor tensor;
  ASSERT_TRUE(tensor.FromProto(proto));
  EXPECT_EQ(RecordInTensor(tensor), nullptr);
}

// What FindRecord says to `value`, which it releases.
std::string ErrorOf(Value value, const RecordType& type) {
  Record* record = nullptr;
  const absl::Status status = FindRecord(value, type, &record);
  value.Release();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST_F(RecordTest, IsRecognized) {
  const RecordType type = {"node", "F", {DT_INT32, DT_INT32}};
  Value value = Value::Own(Make(7));
  Record* record = nullptr;
  EXPECT_TRUE(FindRecord(value, type, &record).ok());
  EXPECT_EQ(record, value.record);
  const Tensor boxed = BoxRecord(value.record);
  record = nullptr;
  EXPECT_TRUE(FindRecord(Value::Borrow(&boxed), type, &record).ok());
  EXPECT_EQ(record, value.record);
  value.Release();
}

TEST_F(RecordTest, WhatIsNoneIsRejected) {
  const RecordType type = {"node", "F", {DT_INT32, DT_INT32}};
  const std::string subject = "Gradient of 'F': its input is not the record of a forward call but ";
  EXPECT_EQ(ErrorOf(Value::Own(new Tensor(VariantTensor({}))), type),
            subject + "an empty variant, which is what a call that keeps no record gives");
  EXPECT_EQ(ErrorOf(Value::Own(new Tensor(VariantTensor(Tensor(1)))), type),
            subject + "a variant of type tensorflow::Tensor");
  EXPECT_EQ(ErrorOf(Value::Own(new Tensor(VariantTensor(RecordVariant()))), type),
            subject + "that of one in another process; pin forward and backward calls to one");
  EXPECT_EQ(ErrorOf(Value::Own(new Tensor(DT_VARIANT, TensorShape({2}))), type),
            subject + "a tensor of type variant and shape [2]");
  EXPECT_EQ(ErrorOf(live_.Make(1), type), subject + "a tensor of type int32 and shape [1]");
  EXPECT_EQ(ErrorOf(Value::Own(Make(1, Make(2))), type),
            "Gradient of 'F': the record of its forward call holds 3 values, expected 2");
  EXPECT_EQ(ErrorOf(Value::Own(Make(1)), {"node", "F", {DT_INT32, DT_FLOAT}}),
            "Gradient of 'F': value 1 of the record of its forward call is int32, expected float");
}

}  // namespace
}  // namespace tensorflow_recursion
