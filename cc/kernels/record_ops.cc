// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/record_ops.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "cc/values/device_memory.h"
#include "tensorflow/core/framework/memory_types.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/variant_op_registry.h"

namespace tensorflow_recursion {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::TypeIndex;
using tensorflow::UnaryVariantOpRegistry;
using tensorflow::Variant;
using tensorflow::VariantDeviceCopyDirection;
// The macros below need it.
namespace variant_op_registry_fn_registration = tensorflow::variant_op_registry_fn_registration;

namespace {

// Takes scalars and records out of their tensors, so that a record is as small here as one that our executor makes.
Value Unbox(const Tensor& tensor, bool is_on_host) {
  const bool is_number = is_on_host && tensor.dims() == 0 && IsUnboxed(tensor.dtype()) && tensor.IsInitialized();
  if (is_number) return ScalarFromTensor(tensor);
  if (Record* record = RecordInTensor(tensor); record != nullptr) {
    record->Ref();
    return Value::Own(record);
  }
  return Value::Own(NewTensor(tensor));
}

// Copies a record, and the records that it holds, between the memories of devices. It does so in a loop, because a
// chain of records may be as long as the recursion was deep.
class Copier {
 public:
  Copier(VariantDeviceCopyDirection direction, const UnaryVariantOpRegistry::AsyncTensorDeviceCopyFn& copy)
      : direction_(direction), copy_(copy) {}

  absl::Status Copy(const RecordVariant& from, RecordVariant* to) {
    *to = RecordVariant(CopyOf(from.get()));
    while (!work_.empty()) {
      const auto [source, target] = work_.back();
      work_.pop_back();
      for (uint32_t i = 0; i < source->size(); ++i) TFR_RETURN_IF_ERROR(CopyValue(*source, i, target));
    }
    return absl::OkStatus();
  }

 private:
  // Returns the copy of a record, with a reference for the caller. Its values are filled in later.
  Record* CopyOf(Record* from) {
    if (from == nullptr) return nullptr;
    const auto [position, is_new] = copies_.try_emplace(from, nullptr);
    if (is_new) {
      position->second = Record::New(from->size());
      work_.emplace_back(from, position->second);
    } else {
      position->second->Ref();
    }
    return position->second;
  }

  absl::Status CopyValue(const Record& from, uint32_t index, Record* to) {
    const tensorflow::DataType dtype = from.dtype(index);
    const Value value = from.Get(index);
    if (value.is_empty()) return absl::OkStatus();
    if (value.kind == Value::Kind::kRecord) {
      to->Set(index, Value::Own(CopyOf(value.record)), dtype);
      return absl::OkStatus();
    }
    const Tensor tensor = TensorFromValue(value, dtype);
    Tensor copy;
    if (dtype == tensorflow::DT_VARIANT && tensor.dims() == 0) {
      copy = Tensor(dtype, tensor.shape());
      TFR_RETURN_IF_ERROR(VariantDeviceCopy(direction_, tensor.scalar<Variant>()(), &copy.scalar<Variant>()(), copy_));
    } else if (tensorflow::MTypeFromDType(dtype) == tensorflow::HOST_MEMORY || tensor.NumElements() == 0) {
      to->Set(index, value.Copy(), dtype);  // is in the host's memory for every device
      return absl::OkStatus();
    } else {
      TFR_RETURN_IF_ERROR(copy_(tensor, &copy));
    }
    to->Set(index, Value::Own(NewTensor(std::move(copy))), dtype);
    return absl::OkStatus();
  }

  const VariantDeviceCopyDirection direction_;
  const UnaryVariantOpRegistry::AsyncTensorDeviceCopyFn& copy_;
  // The copy of each record. The first copy keeps all others alive.
  absl::flat_hash_map<Record*, Record*> copies_;
  // Records whose values are still to be copied, and their copies.
  std::vector<std::pair<Record*, Record*>> work_;
};

template <VariantDeviceCopyDirection kDirection>
absl::Status CopyRecord(const RecordVariant& from, RecordVariant* to,
                        const UnaryVariantOpRegistry::AsyncTensorDeviceCopyFn& copy) {
  return Copier(kDirection, copy).Copy(from, to);
}

INTERNAL_REGISTER_UNARY_VARIANT_DEVICE_COPY_FUNCTION(RecordVariant, VariantDeviceCopyDirection::HOST_TO_DEVICE,
                                                     CopyRecord<VariantDeviceCopyDirection::HOST_TO_DEVICE>);
INTERNAL_REGISTER_UNARY_VARIANT_DEVICE_COPY_FUNCTION(RecordVariant, VariantDeviceCopyDirection::DEVICE_TO_HOST,
                                                     CopyRecord<VariantDeviceCopyDirection::DEVICE_TO_HOST>);
INTERNAL_REGISTER_UNARY_VARIANT_DEVICE_COPY_FUNCTION(RecordVariant, VariantDeviceCopyDirection::DEVICE_TO_DEVICE,
                                                     CopyRecord<VariantDeviceCopyDirection::DEVICE_TO_DEVICE>);

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

void ListOrZerosOp::Compute(OpKernelContext* context) {
  const Record* const record = RecordInTensor(context->input(0));
  if (record == nullptr || record->size() > 0) return context->set_output(0, context->input(0));
  const Tensor& like = context->input(1);
  OP_REQUIRES(context, like.IsInitialized() && like.dims() == 0,
              InvalidArgument("Gradient '", name(), "': expected a scalar that holds a list, got shape ",
                              like.shape().DebugString()));
  const auto& list = like.scalar<Variant>()();
  const auto* const zeros_like = UnaryVariantOpRegistry::Global()->GetUnaryOpFn(
      tensorflow::ZEROS_LIKE_VARIANT_UNARY_OP, device_type_.type_string(), list.TypeId());
  OP_REQUIRES(context, zeros_like != nullptr,
              absl::UnimplementedError(absl::StrCat("Gradient '", name(), "': there are no zeros like a ",
                                                    list.TypeName(), " on a ", device_type_.type_string())));
  Tensor zeros(tensorflow::DT_VARIANT, TensorShape({}));
  OP_REQUIRES_OK(context, (*zeros_like)(context, list, &zeros.scalar<Variant>()()));
  context->set_output(0, std::move(zeros));
}

}  // namespace tensorflow_recursion
