// SPDX-License-Identifier: Apache-2.0
#include "cc/runtime/record_ops.h"

#include <string>

#include "cc/base/names.h"
#include "cc/executor/device_memory.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow_recursion {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;

namespace {

// Scalars and records without their boxes, so that a record is as small as in the tagged executor.
Value Unbox(const Tensor& tensor, bool is_on_host) {
  const bool is_number = is_on_host && tensor.dims() == 0 && IsUnboxed(tensor.dtype()) && tensor.IsInitialized();
  if (is_number) return ScalarFromTensor(tensor);
  if (Record* record = RecordInTensor(tensor); record != nullptr) {
    record->Ref();
    return Value::Own(record);
  }
  return Value::Own(new Tensor(tensor));
}

}  // namespace

void RetainOp::Compute(OpKernelContext* context) {
  RecordVariant record(Record::New(static_cast<uint32_t>(num_inputs())));
  for (int i = 0; i < num_inputs(); ++i) {
    const Value value = Unbox(context->input(i), IsOnHost(device_type_, context->input_memory_type(i)));
    record.get()->Set(static_cast<uint32_t>(i), value, input_type(i));
  }
  context->set_output(0, BoxRecord(record.get()));
}

RecallOp::RecallOp(tensorflow::OpKernelConstruction* construction) : OpKernel(construction) {
  OP_REQUIRES_OK(construction, construction->GetAttr(kFunctionAttr, &type_.function));
  type_.name = name();
  type_.function = UserName(type_.function);
  type_.types = output_types();
}

void RecallOp::Compute(OpKernelContext* context) {
  Tensor input = context->input(0);
  Record* record = nullptr;
  OP_REQUIRES_OK(context, FindRecord(Value::Borrow(&input), type_, &record));
  for (int i = 0; i < num_outputs(); ++i) {
    context->set_output(i, TensorFromValue(record->Get(i), output_type(i)));
  }
}

}  // namespace tensorflow_recursion
