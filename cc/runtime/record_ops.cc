// SPDX-License-Identifier: Apache-2.0
#include "cc/runtime/record_ops.h"

#include <string>

#include "cc/base/names.h"
#include "cc/executor/device_memory.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/variant_op_registry.h"

namespace tensorflow_recursion {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TypeIndex;
using tensorflow::UnaryVariantOpRegistry;
using tensorflow::VariantDeviceCopyDirection;
namespace variant_op_registry_fn_registration = tensorflow::variant_op_registry_fn_registration;  // for the macros

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

// A record stays where it is, as long as it goes from one place to another: what it holds is read by who has retained
// it, on the device where that was (`IsMisplaced`).
absl::Status PassOn(const RecordVariant& from, RecordVariant* to,
                    const UnaryVariantOpRegistry::AsyncTensorDeviceCopyFn& /*copy*/) {
  *to = from;
  return absl::OkStatus();
}

INTERNAL_REGISTER_UNARY_VARIANT_DEVICE_COPY_FUNCTION(RecordVariant, VariantDeviceCopyDirection::HOST_TO_DEVICE, PassOn);
INTERNAL_REGISTER_UNARY_VARIANT_DEVICE_COPY_FUNCTION(RecordVariant, VariantDeviceCopyDirection::DEVICE_TO_HOST, PassOn);
INTERNAL_REGISTER_UNARY_VARIANT_DEVICE_COPY_FUNCTION(RecordVariant, VariantDeviceCopyDirection::DEVICE_TO_DEVICE,
                                                     PassOn);

// Whether a value retained elsewhere can't be read here.
bool IsMisplaced(const Value& value, tensorflow::DataType dtype, bool is_on_host) {
  if (value.kind == Value::Kind::kScalar) return !is_on_host;
  if (value.kind != Value::Kind::kTensor || !DataTypeCanUseMemcpy(dtype) || !value.tensor->IsInitialized()) return false;
  const bool is_device_memory = value.tensor->GetMemoryType() == tensorflow::AllocatorMemoryType::kDevice;
  return value.tensor->NumElements() > 0 && is_device_memory == is_on_host;
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

RecallOp::RecallOp(tensorflow::OpKernelConstruction* construction)
    : OpKernel(construction), device_type_(construction->device_type()) {
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
    const Value value = record->Get(i);
    OP_REQUIRES(context, !IsMisplaced(value, output_type(i), IsOnHost(device_type_, output_memory_types()[i])),
                InvalidArgument("Gradient '", name(), "': its function has run on another device; the gradient must "
                                "run where the function does"));
    context->set_output(i, TensorFromValue(value, output_type(i)));
  }
}

}  // namespace tensorflow_recursion
