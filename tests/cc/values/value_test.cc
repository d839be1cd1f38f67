// SPDX-License-Identifier: Apache-2.0
#include "cc/values/value.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "tensorflow/core/framework/types.h"
#include "tests/cc/values/live_tensors.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;

// The number survives the way into a Value and back.
template <typename T>
void ExpectUnboxes(T number) {
  const tensorflow::DataType dtype = tensorflow::DataTypeToEnum<T>::value;
  EXPECT_TRUE(IsUnboxed(dtype));
  Value value = ValueFromTensor(new Tensor(number));
  ASSERT_EQ(value.kind, Value::Kind::kScalar);
  const Tensor tensor = TensorFromScalar(value, dtype);
  ASSERT_EQ(tensor.dtype(), dtype);
  ASSERT_EQ(tensor.dims(), 0);
  EXPECT_EQ(tensor.scalar<T>()(), number);
  EXPECT_EQ(TensorFromValue(value, dtype).scalar<T>()(), number);
}

TEST(ValueTest, ScalarsLoseTheirBox) {
  ExpectUnboxes(true);
  ExpectUnboxes(false);
  ExpectUnboxes(std::numeric_limits<int32_t>::min());
  ExpectUnboxes(std::numeric_limits<int64_t>::max());
  ExpectUnboxes(-1.5f);
  ExpectUnboxes(1e300);
  ExpectUnboxes(std::numeric_limits<int8_t>::min());
  ExpectUnboxes(std::numeric_limits<int16_t>::min());
  ExpectUnboxes(std::numeric_limits<uint8_t>::max());
  ExpectUnboxes(std::numeric_limits<uint16_t>::max());
  ExpectUnboxes(std::numeric_limits<uint32_t>::max());
  ExpectUnboxes(std::numeric_limits<uint64_t>::max());
}

TEST(ValueTest, OtherTensorsKeepTheirBox) {
  EXPECT_FALSE(IsUnboxed(tensorflow::DT_STRING));
  EXPECT_FALSE(IsUnboxed(tensorflow::DT_HALF));
  EXPECT_FALSE(IsUnboxed(tensorflow::DT_INT32_REF));
  for (Tensor* tensor : {new Tensor(tensorflow::tstring("text")), new Tensor(tensorflow::DT_INT32, TensorShape({1})),
                         new Tensor(Eigen::half(3))}) {
    Value value = ValueFromTensor(tensor);
    EXPECT_EQ(value.kind, Value::Kind::kTensor);
    EXPECT_EQ(value.tensor, tensor);
    value.Release();
  }
}

TEST(ValueTest, ReleaseFreesWhatTheValueOwns) {
  LiveTensors live;
  Value value = live.Make(1);
  EXPECT_TRUE(value.owns());
  EXPECT_EQ(live.count(), 1);
  value.Release();
  EXPECT_EQ(live.count(), 0);
  EXPECT_TRUE(value.is_empty());
  value.Release();  // no effect
}

TEST(ValueTest, CopiesShareTheBufferAndLiveOnTheirOwn) {
  LiveTensors live;
  Value value = live.Make(7);
  Value copy = value.Copy();
  EXPECT_NE(copy.tensor, value.tensor);
  EXPECT_TRUE(copy.tensor->SharesBufferWith(*value.tensor));
  EXPECT_FALSE(value.tensor->RefCountIsOne());  // so no kernel writes into what the other reads
  value.Release();
  EXPECT_TRUE(copy.tensor->RefCountIsOne());
  EXPECT_EQ(live.count(), 1);
  EXPECT_EQ(LiveTensors::Number(copy), 7);
  copy.Release();
  EXPECT_EQ(live.count(), 0);
}

TEST(ValueTest, TakeLeavesTheValueEmpty) {
  LiveTensors live;
  Value value = live.Make(1);
  Value taken = value.Take();
  EXPECT_TRUE(value.is_empty());
  value.Release();
  EXPECT_EQ(live.count(), 1);
  taken.Release();
}

TEST(ValueTest, ConstantsAreBorrowed) {
  const Tensor tensor(tensorflow::DT_INT32, TensorShape({2}));
  Value value = Value::Constant(&tensor);
  EXPECT_FALSE(value.owns());
  EXPECT_EQ(value.Copy().constant, &tensor);
  EXPECT_TRUE(TensorFromValue(value, tensorflow::DT_INT32).SharesBufferWith(tensor));
  value.Release();
  EXPECT_EQ(tensor.NumElements(), 2);
}

TEST(ValueTest, BorrowedTensorsAreOwnedOnceTheyEscape) {
  LiveTensors live;
  Value owner = live.Make(5);
  Value borrowed = Value::Borrow(owner.tensor);
  EXPECT_FALSE(borrowed.owns());
  EXPECT_EQ(borrowed.Copy().tensor_or_null(), owner.tensor);
  Value escaped = borrowed.Escape();
  EXPECT_TRUE(escaped.owns());
  borrowed.Release();
  owner.Release();
  EXPECT_EQ(LiveTensors::Number(escaped), 5);
  escaped.Release();
  EXPECT_EQ(live.count(), 0);
}

TEST(ValueTest, OnlyBorrowedValuesChangeWhenTheyEscape) {
  LiveTensors live;
  Value value = live.Make(5);
  EXPECT_EQ(value.Escape().tensor, value.tensor);
  EXPECT_TRUE(value.tensor->RefCountIsOne());
  value.Release();
  EXPECT_TRUE(Value::Scalar(3).Escape().is_scalar());
  EXPECT_EQ(Value::Scalar(3).tensor_or_null(), nullptr);
}

TEST(ValueTest, ReferencesAreReadUnderTheirLock) {
  std::remove_pointer_t<decltype(tensorflow::TensorValue::mutex_if_ref)> mutex;
  Tensor variable(int32_t{5});
  Value value = Value::Ref(tensorflow::TensorValue(&mutex, &variable));
  Value copy = value.Copy();
  EXPECT_TRUE(value.owns());
  EXPECT_NE(copy.ref, value.ref);
  EXPECT_EQ(copy.ref->tensor, &variable);
  EXPECT_EQ(TensorFromValue(copy, tensorflow::DT_INT32).scalar<int32_t>()(), 5);
  EXPECT_TRUE(mutex.try_lock());  // given back
  mutex.unlock();
  value.Release();
  copy.Release();
  EXPECT_EQ(variable.scalar<int32_t>()(), 5);
}

TEST(ValueTest, EmptyAndDeadValuesHoldNoTensor) {
  for (const Value& value : {Value::Empty(), Value::Dead()}) {
    EXPECT_FALSE(value.owns());
    EXPECT_FALSE(value.is_scalar());
    EXPECT_EQ(TensorFromValue(value, tensorflow::DT_INT32).NumElements(), 0);
  }
  EXPECT_TRUE(Value::Empty().is_empty());
  EXPECT_TRUE(Value::Dead().is_dead());
}

}  // namespace
}  // namespace tensorflow_recursion
