// Registers zeros and sums of variants, for which gradients of gradients ask.
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

// Zeros are a record without values. It is of the type of records, because TensorFlow only adds variants of one type.
absl::Status ZerosLikeRecord(OpKernelContext* /*context*/, const Variant& /*like*/, Variant* zero) {
  *zero = RecordVariant(Record::New(0));
  return absl::OkStatus();
}

bool IsZero(const RecordVariant* record) {
  return record == nullptr || record->get() == nullptr || record->get()->size() == 0;
}

// Returns the gradient that is not zero. At most one is, because a call has only one gradient call in a body that is
// differentiated.
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

// Registers zeros and sums of records, and of variants without a value, which an If yields for a list of the branch
// that it has not taken. TensorFlow makes zeros like both, because a loop keeps records in lists. Nobody reads the
// zeros, so they need no value.
bool Register() noexcept {
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
  // To copy a variant without a value between the memories of devices is to make another one.
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

// Where dynamic execution runs a branch, an operator FakeParam stands for a record or a list of the branch that is not
// taken. TensorFlow's kernel would make the variant in the memory of its device, which on a GPU ends the process.
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
