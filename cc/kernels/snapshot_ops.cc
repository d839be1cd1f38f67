// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/snapshot_ops.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/values/record.h"
#include "cc/values/value.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"

namespace tensorflow_recursion {

using tensorflow::OpKernelContext;
using tensorflow::ResourceHandle;
using tensorflow::ResourceMgr;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::Var;
using tensorflow::core::WeakPtr;

namespace {

// A tensor with a buffer of its own.
absl::Status Copy(OpKernelContext* context, const Tensor& value, Tensor* copy) {
  if (context->op_device_context() == nullptr) {
    *copy = tensorflow::tensor::DeepCopy(value);
    return absl::OkStatus();
  }
  TFR_RETURN_IF_ERROR(context->allocate_temp(value.dtype(), value.shape(), copy));
  auto* const device = static_cast<tensorflow::Device*>(context->device());
  absl::Status status;
  context->op_device_context()->CopyTensorInSameDevice(&value, device, copy,
                                                       [&status](const absl::Status& done) { status = done; });
  return status;
}

// The value of a variable, if there is one that can be kept. If rows of the variable are updated in place, that is a
// copy, and there is none unless the call assigns to it.
absl::Status ValueOf(OpKernelContext* context, const ResourceHandle& handle, bool is_assigned,
                     std::optional<Tensor>* value) {
  tensorflow::core::RefCountPtr<Var> variable;
  if (!LookupResource(context, handle, &variable).ok()) return absl::OkStatus();
  const tensorflow::tf_shared_lock lock(*variable->mu());
  if (!variable->is_initialized) return absl::OkStatus();
  if (!variable->copy_on_read_mode.load()) {
    *value = *variable->tensor();
  } else if (is_assigned) {
    TFR_RETURN_IF_ERROR(Copy(context, *variable->tensor(), &value->emplace()));
  }
  return absl::OkStatus();
}

// Whether a resource manager is still there.
struct Presence {
  std::mutex mu;
  bool is_there ABSL_GUARDED_BY(mu) = true;
};

// A resource that ends with its manager.
class Witness : public tensorflow::ResourceBase {
 public:
  ~Witness() override {
    const std::lock_guard<std::mutex> lock(presence->mu);
    presence->is_there = false;
  }
  std::string DebugString() const override { return "witness of a resource manager"; }

  const std::shared_ptr<Presence> presence = std::make_shared<Presence>();
};

absl::Status PresenceOf(ResourceMgr* manager, std::shared_ptr<Presence>* presence) {
  Witness* witness = nullptr;
  const auto make = [](Witness** made) {
    *made = new Witness;
    return absl::OkStatus();
  };
  TFR_RETURN_IF_ERROR(manager->LookupOrCreate<Witness>(kSnapshotContainer, "witness", &witness, make));
  *presence = witness->presence;
  witness->Unref();
  return absl::OkStatus();
}

// Lets the manager find a variable by its name as long as the variable is there. AssignVariableOp looks for it there,
// and would make another one, although the handle has it.
absl::Status Enter(ResourceMgr* manager, const std::string& name, Var* variable) {
  std::shared_ptr<Presence> presence;
  TFR_RETURN_IF_ERROR(PresenceOf(manager, &presence));
  TFR_RETURN_IF_ERROR(manager->CreateUnowned(kSnapshotContainer, name, variable));
  auto* const reference = new std::optional<WeakPtr<Var>>;  // which ends with the variable
  reference->emplace(variable, [manager, name, presence, reference] {
    const std::unique_ptr<std::optional<WeakPtr<Var>>> ends(reference);
    const std::lock_guard<std::mutex> lock(presence->mu);
    if (presence->is_there) manager->Delete<Var>(kSnapshotContainer, name).IgnoreError();
  });
  return absl::OkStatus();
}

absl::Status MakeVariable(OpKernelContext* context, Tensor value, const ResourceHandle& like, Tensor* handle) {
  auto* const variable = new Var(value.dtype());
  *variable->tensor() = std::move(value);
  variable->is_initialized = true;
  // From here on the handle owns the variable.
  auto made = ResourceHandle::MakeRefCountingHandle(variable, context->device()->name(), like.dtypes_and_shapes());
  made.set_container(kSnapshotContainer);
  TFR_RETURN_IF_ERROR(Enter(context->resource_manager(), made.name(), variable));
  *handle = Tensor(tensorflow::DT_RESOURCE, TensorShape({}));
  handle->scalar<ResourceHandle>()() = made;
  return absl::OkStatus();
}

// Reads the attribute that says of each variable which input of the call it is.
absl::Status ReadPositions(tensorflow::OpKernelConstruction* construction, int count, std::vector<int32_t>* positions) {
  TFR_RETURN_IF_ERROR(construction->GetAttr(kPositionsAttr, positions));
  const bool are_in_range = std::all_of(positions->begin(), positions->end(),
                                        [](int32_t position) { return position >= 0 && position < Record::kMaxSize; });
  if (static_cast<int>(positions->size()) == count && are_in_range) return absl::OkStatus();
  return InvalidArgument("Node '", construction->def().name(), "': expected ", count,
                         " positions of variables between 0 and ", Record::kMaxSize - 1);
}

// Fails if input `index`, which is of DT_RESOURCE, holds no handle.
absl::Status CheckHoldsHandle(const OpKernelContext& context, int index) {
  const Tensor& input = context.input(index);
  if (input.NumElements() > 0) return absl::OkStatus();
  return InvalidArgument("Node '", context.op_kernel().name(), "': expected the handle of a variable, got shape ",
                         input.shape().DebugString());
}

}  // namespace

SnapshotOp::SnapshotOp(tensorflow::OpKernelConstruction* construction) : OpKernel(construction) {
  OP_REQUIRES_OK(construction, ReadPositions(construction, num_inputs(), &positions_));
  for (const int32_t position : positions_) size_ = std::max(size_, static_cast<uint32_t>(position) + 1);
  OP_REQUIRES_OK(construction, construction->GetAttr(kAssignedAttr, &assigned_));
}

void SnapshotOp::Compute(OpKernelContext* context) {
  RecordVariant record(Record::New(size_));
  for (int i = 0; i < num_inputs(); ++i) {
    if (input_type(i) != tensorflow::DT_RESOURCE) continue;
    OP_REQUIRES_OK(context, CheckHoldsHandle(*context, i));
    const bool is_assigned = std::find(assigned_.begin(), assigned_.end(), positions_[i]) != assigned_.end();
    std::optional<Tensor> value;
    OP_REQUIRES_OK(context, ValueOf(context, tensorflow::HandleFromInput(context, i), is_assigned, &value));
    if (!value.has_value()) continue;
    record.get()->Set(static_cast<uint32_t>(positions_[i]), Value::Own(NewTensor(*value)), value->dtype());
  }
  context->set_output(0, BoxRecord(record.get()));
}

VariablesOfOp::VariablesOfOp(tensorflow::OpKernelConstruction* construction) : OpKernel(construction) {
  OP_REQUIRES_OK(construction, ReadPositions(construction, num_outputs(), &positions_));
}

void VariablesOfOp::Compute(OpKernelContext* context) {
  const Record* const record = RecordInTensor(context->input(0));
  // Handles of one variable become handles of one copy.
  std::map<std::pair<std::string, std::string>, Tensor> copies;
  for (int i = 0; i < num_outputs(); ++i) {
    const auto position = static_cast<uint32_t>(positions_[i]);
    const bool is_variable = input_type(i + 1) == tensorflow::DT_RESOURCE;
    if (!is_variable || record == nullptr || position >= record->size() || record->Get(position).is_empty()) {
      context->set_output(i, context->input(i + 1));
      continue;
    }
    OP_REQUIRES_OK(context, CheckHoldsHandle(*context, i + 1));
    const ResourceHandle& handle = tensorflow::HandleFromInput(context, i + 1);
    Tensor& copy = copies[{handle.container(), handle.name()}];
    if (copy.dtype() != tensorflow::DT_RESOURCE) {
      const Tensor value = TensorFromValue(record->Get(position), record->dtype(position));
      OP_REQUIRES_OK(context, MakeVariable(context, value, handle, &copy));
    }
    context->set_output(i, copy);
  }
}

}  // namespace tensorflow_recursion
