// Kernels that take rows of a tensor or of a variable, and that read variables.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstring>

#include "cc/native/native_table.h"
#include "cc/native/operands.h"
#include "cc/native/views.h"
#include "cc/values/block_pool.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/refcount.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::TryGetNodeAttr;
using Byte = unsigned char;

// Copies `count` rows of `params`, each of `row` bytes. Returns false if an index is not that of a row.
template <typename Index>
bool CopyRows(const Tensor& params, const Index* indices, int64_t count, int64_t row, Byte* to) {
  const int64_t rows = params.dim_size(0);
  const Byte* const from = DataOf<Byte>(params);
  for (int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<int64_t>(indices[i]);
    if (index < 0 || index >= rows) return false;
    std::memcpy(to + i * row, from + index * row, row);
  }
  return true;
}

// What rows are taken of, and how.
struct Source {
  const Tensor& params;
  bool is_given_up;  // see ShareMemory()
  bool may_share;    // a single row may be shared instead of copied
  bool may_copy;
};

template <typename Index>
bool Gather(const NativeKernel& kernel, const Source& source, const Value& indices, Value* output) {
  const Tensor& params = source.params;
  Operand<Index> operand;
  if (!operand.Read(indices) || operand.size == 0) return false;
  if (operand.dims() + params.dims() > 2 * kMostDimensions) return false;
  TensorShape shape;
  for (int d = 0; d < operand.dims(); ++d) shape.AddDim(operand.dim_size(d));
  for (int d = 1; d < params.dims(); ++d) shape.AddDim(params.dim_size(d));
  const int64_t rows = params.dim_size(0), numbers = params.NumElements() / rows;
  if (source.may_share && operand.size == 1) {
    const auto index = static_cast<int64_t>(operand.data[0]);
    if (index < 0 || index >= rows) return false;
    if (ShareMemory(kernel, params, index * numbers, shape, source.is_given_up, output)) return true;
  }
  const int64_t element = tensorflow::DataTypeSize(kernel.dtype);
  if (!source.may_copy || shape.num_elements() * element > static_cast<int64_t>(kLargestBlock)) return false;
  const int64_t row = numbers * element;
  if (shape.dims() == 0) {
    *output = Value::Scalar(0);
    if (CopyRows(params, operand.data, 1, row, reinterpret_cast<Byte*>(&output->bits))) return true;
  } else if (CopyRows(params, operand.data, operand.size, row, NewOutput<Byte>(kernel.dtype, shape, output))) {
    return true;
  }
  output->Release();
  return false;
}

// numbers[0] is the dtype of the indices.
bool GatherRows(const NativeKernel& kernel, const Source& source, const Value& indices, Value* output) {
  const Tensor& params = source.params;
  if (params.dims() == 0 || !params.IsInitialized() || params.NumElements() == 0) return false;
  return kernel.numbers[0] == tensorflow::DT_INT32 ? Gather<int32_t>(kernel, source, indices, output)
                                                   : Gather<int64_t>(kernel, source, indices, output);
}

// Inputs: a tensor of any size, indices of its rows, and for GatherV2 the axis, which must be 0.
bool RunGather(const NativeKernel& kernel, const NativeContext& /*context*/, Value* inputs, Value* outputs) {
  const Tensor* const params = inputs[0].tensor_or_null();
  if (params == nullptr || (kernel.num_inputs == 3 && (!inputs[2].is_scalar() || inputs[2].bits != 0))) return false;
  const Source source{*params, IsGivenUp(inputs[0]), /*may_share=*/true, /*may_copy=*/true};
  return GatherRows(kernel, source, inputs[1], &outputs[0]);
}

bool BindGather(const tensorflow::Node& node, NativeKernel* kernel) {
  int64_t batch_dims = 0;
  if (!IsPlain(kernel->dtype) || !IsUnboxed(kernel->dtype) || !IsIndexType(node.input_type(1))) return false;
  if (TryGetNodeAttr(node.attrs(), "batch_dims", &batch_dims) && batch_dims != 0) return false;
  kernel->numbers[0] = node.input_type(1);
  kernel->ropes = HandedOnOrMultipliedWith(node);
  kernel->run = RunGather;
  return true;
}

// Gathers rows of a variable, whose lock is held meanwhile.
//
// Sparse operators change a variable in copy_on_read_mode in place, so its rows are copied. Of any other variable a
// matrix is shared: who changes that copies it first, as after a ReadVariableOp. What cannot be shared (vectors of a
// table, several matrices, small ones) is left to the stock kernel, which sets the mode, for good: a table of vectors
// will be changed by sparse operators, and then needs no copy of the whole.
bool GatherFrom(tensorflow::Var* variable, const NativeKernel& kernel, const Value& indices, Value* output) {
  tensorflow::tf_shared_lock lock(*variable->mu());
  const Tensor& params = *variable->tensor();
  if (!variable->is_initialized || params.dtype() != kernel.dtype) return false;
  const bool is_copied = variable->copy_on_read_mode.load();
  const Source source{params, /*is_given_up=*/false, /*may_share=*/!is_copied && params.dims() > 2,
                      /*may_copy=*/is_copied};
  return GatherRows(kernel, source, indices, output);
}

using VariablePointer = tensorflow::core::RefCountPtr<tensorflow::Var>;

// The variable that a handle names, or that it holds, as handles of TensorFlow 2 do; nullptr if it is not on this
// device.
VariablePointer FindVariable(const Value& value, const NativeContext& context) {
  const Tensor* const handle_tensor = value.tensor_or_null();
  if (handle_tensor == nullptr || handle_tensor->dtype() != tensorflow::DT_RESOURCE) return nullptr;
  if (handle_tensor->NumElements() != 1 || context.resources == nullptr || context.device == nullptr) return nullptr;
  const auto& handle = handle_tensor->flat<tensorflow::ResourceHandle>()(0);
  if (handle.device() != *context.device) return nullptr;
  tensorflow::Var* variable = nullptr;
  if (handle.IsRefCounting()) {
    const auto held = handle.GetResource<tensorflow::Var>();
    if (!held.ok()) return nullptr;
    variable = *held;
    variable->Ref();
  } else if (!context.resources->Lookup(handle.container(), handle.name(), &variable).ok()) {
    return nullptr;
  }
  return VariablePointer(variable);
}

// Inputs: a variable's handle, indices of rows.
bool RunResourceGather(const NativeKernel& kernel, const NativeContext& context, Value* inputs, Value* outputs) {
  const VariablePointer variable = FindVariable(inputs[0], context);
  return variable != nullptr && GatherFrom(variable.get(), kernel, inputs[1], &outputs[0]);
}

// Reads a variable without copying it. A variable in copy_on_read_mode, which sparse operators change in place, is left
// to the stock kernel, which copies it.
bool RunReadVariable(const NativeKernel& kernel, const NativeContext& context, Value* inputs, Value* outputs) {
  const VariablePointer variable = FindVariable(inputs[0], context);
  if (variable == nullptr) return false;
  tensorflow::tf_shared_lock lock(*variable->mu());
  const Tensor& tensor = *variable->tensor();
  if (variable->copy_on_read_mode.load() || !variable->is_initialized || tensor.dtype() != kernel.dtype) return false;
  if (!tensor.IsInitialized()) return false;
  outputs[0] = ValueFromTensor(NewTensor(tensor));
  return true;
}

bool BindReadVariable(const tensorflow::Node& /*node*/, NativeKernel* kernel) {
  kernel->run = RunReadVariable;
  return true;
}

bool BindResourceGather(const tensorflow::Node& node, NativeKernel* kernel) {
  if (!BindGather(node, kernel)) return false;
  kernel->run = RunResourceGather;
  return true;
}

}  // namespace

void AddGathers(NativeTable* table) {
  table->insert({{"Gather", BindGather},
                 {"GatherV2", BindGather},
                 {"ResourceGather", BindResourceGather},
                 {"ReadVariableOp", BindReadVariable}});
}

}  // namespace tensorflow_recursion
