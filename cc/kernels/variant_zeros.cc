// Zeros and sums of variants that have no gradient of their own, where a gradient of gradients asks for them.
// SPDX-License-Identifier: Apache-2.0
#include "absl/status/status.h"
#include "cc/values/record.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_op_registry.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::TypeIndex;
using tensorflow::UnaryVariantOpRegistry;
using tensorflow::Variant;
using tensorflow::VariantDeviceCopyDirection;

absl::Status ZerosLike(OpKernelContext* /*context*/, const Variant& /*like*/, Variant* zero) {
  *zero = Variant();
  return absl::OkStatus();
}

// A record without values: of the type of records, because TensorFlow only adds variants of one type.
absl::Status ZerosLikeRecord(OpKernelContext* /*context*/, const Variant& /*like*/, Variant* zero) {
  *zero = RecordVariant(Record::New(0));
  return absl::OkStatus();
}

bool IsZero(const RecordVariant* record) {
  return record == nullptr || record->get() == nullptr || record->get()->size() == 0;
}

// One call has one gradient call in a differentiated body, so at most one of the two gradients for its record is not 0.
absl::Status AddRecords(OpKernelContext* /*context*/, const Variant& a, const Variant& b, Variant* sum) {
  const bool is_first = !IsZero(a.get<RecordVariant>());
  if (is_first && !IsZero(b.get<RecordVariant>())) {
    return absl::UnimplementedError(
        "two gradients for the record of one call cannot be added: what a body computes from a gradient of its own "
        "call is differentiated along with that call; make that gradient of a call of its own");
  }
  *sum = is_first ? a : b;
  return absl::OkStatus();
}

absl::Status Add(OpKernelContext* /*context*/, const Variant& /*a*/, const Variant& /*b*/, Variant* sum) {
  *sum = Variant();
  return absl::OkStatus();
}

// What an If yields for a list of the branch that it has not taken is a variant without a value, and a loop keeps
// records in lists. TensorFlow makes zeros like both: nobody reads those, so they are without a value too.
bool Register() {
  UnaryVariantOpRegistry* registry = UnaryVariantOpRegistry::Global();
  const TypeIndex no_value = Variant().TypeId();
  for (const char* device : {tensorflow::DEVICE_CPU, tensorflow::DEVICE_GPU}) {
    for (const TypeIndex& type : {no_value, TypeIndex::Make<RecordVariant>()}) {
      if (registry->GetUnaryOpFn(tensorflow::ZEROS_LIKE_VARIANT_UNARY_OP, device, type) != nullptr) {
        continue;  // this TensorFlow has registered it, and a second time would end the process
      }
      const bool is_record = type != no_value;
      registry->RegisterUnaryOpFn(tensorflow::ZEROS_LIKE_VARIANT_UNARY_OP, device, type,
                                  is_record ? ZerosLikeRecord : ZerosLike);
    }
    registry->RegisterBinaryOpFn(tensorflow::ADD_VARIANT_BINARY_OP, device, TypeIndex::Make<RecordVariant>(),
                                 AddRecords);
    if (registry->GetBinaryOpFn(tensorflow::ADD_VARIANT_BINARY_OP, device, no_value) == nullptr) {
      registry->RegisterBinaryOpFn(tensorflow::ADD_VARIANT_BINARY_OP, device, no_value, Add);
    }
  }
  // Between the memories of devices they go as they are.
  for (const auto direction : {VariantDeviceCopyDirection::HOST_TO_DEVICE, VariantDeviceCopyDirection::DEVICE_TO_HOST,
                               VariantDeviceCopyDirection::DEVICE_TO_DEVICE}) {
    if (registry->GetDeviceCopyFn(direction, no_value) != nullptr) continue;
    registry->RegisterDeviceCopyFn(direction, no_value, [](const Variant& /*from*/, Variant* to, const auto& /*copy*/) {
      *to = Variant();
      return absl::OkStatus();
    });
  }
  return true;
}

[[maybe_unused]] const bool is_registered = Register();

// What an untaken branch yields for a record or a list is an operator of its own where dynamic execution runs it.
// TensorFlow's kernel makes variants in the memory of its device, which on a GPU ends the process.
class FakeVariantOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    context->set_output(0, tensorflow::Tensor(tensorflow::DT_VARIANT, tensorflow::TensorShape({})));
  }
};

REGISTER_KERNEL_BUILDER(Name("FakeParam").Device(tensorflow::DEVICE_GPU).TypeConstraint<Variant>("dtype"),
                        FakeVariantOp);

}  // namespace
}  // namespace tensorflow_recursion
