// SPDX-License-Identifier: Apache-2.0
#include "cc/values/value.h"

#include <shared_mutex>

#include "cc/values/contributions.h"
#include "cc/values/invariants.h"
#include "cc/values/record.h"
#include "cc/values/rope.h"
#include "cc/values/scalar_operators.h"

namespace tensorflow_recursion {

using tensorflow::DataType;
using tensorflow::Tensor;

Value Value::CopyOwned() const {
  switch (kind) {
    case Kind::kTensor:
      return Own(NewTensor(*tensor));
    case Kind::kRef:
      return Ref(*ref);
    case Kind::kContributions:
      if (contributions != nullptr) contributions->references.fetch_add(1, std::memory_order_relaxed);
      return *this;
    case Kind::kRope:
      rope->Ref();
      return *this;
    default:
      if (record != nullptr) record->Ref();
      return *this;
  }
}

void Value::ReleaseOwned() {
  switch (kind) {
    case Kind::kTensor:
      return DeleteTensor(tensor);
    case Kind::kRef:
      delete ref;
      return;
    case Kind::kContributions:
      Contributions::Own(contributions);
      return;
    case Kind::kRope:
      return rope->Unref();
    case Kind::kInvariants:
      return Invariants::Delete(invariants);
    default:
      if (record != nullptr) record->Unref();
  }
}

void Value::FlattenRope(tensorflow::thread::ThreadPool* threads) {
  Rope* const from = rope;
  kind = Kind::kTensor;
  tensor = NewTensor(from->Flat(threads));
  from->Unref();
}

namespace {

// Calls `visit` with a number of the C++ type that stands for `dtype`; false if numbers of that dtype are not unboxed.
template <typename Visit>
bool VisitNumber(DataType dtype, Visit visit) {
  switch (dtype) {
#define TFR_CASE(type)                          \
  case tensorflow::DataTypeToEnum<type>::value: \
    visit(static_cast<type>(0));                \
    return true;
    TFR_CASE(bool)
    TFR_CASE(int8_t)
    TFR_CASE(int16_t)
    TFR_CASE(int32_t)
    TFR_CASE(int64_t)
    TFR_CASE(uint8_t)
    TFR_CASE(uint16_t)
    TFR_CASE(uint32_t)
    TFR_CASE(uint64_t)
    TFR_CASE(float)
    TFR_CASE(double)
#undef TFR_CASE
    default:
      return false;
  }
}

}  // namespace

bool IsUnboxed(DataType dtype) {
  return VisitNumber(dtype, [](auto) {});
}

Value ScalarFromTensor(const Tensor& tensor) {
  Value value = Value::Scalar(0);
  VisitNumber(tensor.dtype(), [&](auto number) { value.bits = ToBits(tensor.scalar<decltype(number)>()()); });
  return value;
}

Value ValueFromTensor(Tensor* tensor) {
  if (tensor->dims() != 0 || !IsUnboxed(tensor->dtype()) || !tensor->IsInitialized()) return Value::Own(tensor);
  Value value = ScalarFromTensor(*tensor);
  DeleteTensor(tensor);
  return value;
}

Tensor TensorFromScalar(const Value& value, DataType dtype) {
  Tensor tensor = PooledTensor(dtype, tensorflow::TensorShape({}));
  VisitNumber(dtype,
              [&](auto number) { tensor.scalar<decltype(number)>()() = FromBits<decltype(number)>(value.bits); });
  return tensor;
}

Tensor TensorFromValue(const Value& value, DataType dtype) {
  switch (value.kind) {
    case Value::Kind::kScalar:
      return TensorFromScalar(value, dtype);
    case Value::Kind::kConstant:
    case Value::Kind::kBorrowed:
      return *value.constant;
    case Value::Kind::kTensor:
      return *value.tensor;
    case Value::Kind::kRef: {
      std::shared_lock lock(*value.ref->mutex_if_ref);
      return *value.ref->tensor;
    }
    case Value::Kind::kRope:
      return value.rope->Flat();
    case Value::Kind::kRecord:
      return BoxRecord(value.record);
    case Value::Kind::kContributions: {
      const Value copy = value.Copy();
      return BoxContributions(Contributions::Own(copy.contributions));
    }
    default:
      return Tensor();
  }
}

}  // namespace tensorflow_recursion
