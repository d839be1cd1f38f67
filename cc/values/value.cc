// SPDX-License-Identifier: Apache-2.0
#include "cc/values/value.h"

#include <shared_mutex>

#include "cc/values/record.h"

namespace tensorflow_recursion {

using tensorflow::DataType;
using tensorflow::Tensor;

Value Value::CopyOwned() const {
  if (kind == Kind::kTensor) return Own(new Tensor(*tensor));
  if (kind == Kind::kRef) return Ref(*ref);
  record->Ref();
  return *this;
}

void Value::ReleaseOwned() {
  if (kind == Kind::kTensor) {
    delete tensor;
  } else if (kind == Kind::kRef) {
    delete ref;
  } else {
    record->Unref();
  }
}

bool IsUnboxed(DataType dtype) {
  switch (dtype) {
    case tensorflow::DT_BOOL:
    case tensorflow::DT_INT32:
    case tensorflow::DT_INT64:
    case tensorflow::DT_FLOAT:
    case tensorflow::DT_DOUBLE:
      return true;
    default:
      return false;
  }
}

Value ScalarFromTensor(const Tensor& tensor) {
  Value value = Value::Scalar(0);
  switch (tensor.dtype()) {
    case tensorflow::DT_BOOL:
      value.boolean = tensor.scalar<bool>()();
      break;
    case tensorflow::DT_INT32:
      value.int32 = tensor.scalar<int32_t>()();
      break;
    case tensorflow::DT_INT64:
      value.int64 = tensor.scalar<int64_t>()();
      break;
    case tensorflow::DT_FLOAT:
      value.float32 = tensor.scalar<float>()();
      break;
    default:
      value.float64 = tensor.scalar<double>()();
      break;
  }
  return value;
}

Value ValueFromTensor(Tensor* tensor) {
  if (tensor->dims() != 0 || !IsUnboxed(tensor->dtype()) || !tensor->IsInitialized()) return Value::Own(tensor);
  Value value = ScalarFromTensor(*tensor);
  delete tensor;
  return value;
}

Tensor TensorFromScalar(const Value& value, DataType dtype) {
  switch (dtype) {
    case tensorflow::DT_BOOL:
      return Tensor(value.boolean);
    case tensorflow::DT_INT32:
      return Tensor(value.int32);
    case tensorflow::DT_INT64:
      return Tensor(static_cast<int64_t>(value.int64));
    case tensorflow::DT_FLOAT:
      return Tensor(value.float32);
    default:
      return Tensor(value.float64);
  }
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
    case Value::Kind::kRecord:
      return BoxRecord(value.record);
    default:
      return Tensor();
  }
}

}  // namespace tensorflow_recursion
