// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/contribution_ops.h"

#include <cstring>
#include <utility>
#include <vector>

#include "cc/base/status.h"
#include "cc/values/contributions.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/variant.h"

namespace tensorflow_recursion {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::Variant;

namespace {

using Term = Contributions::Term;

void SetVariant(OpKernelContext* context, Contributions contributions) {
  context->set_output(0, BoxContributions(std::move(contributions)));
}

// Copies `from` to where `to` lies. On a device that is no CPU it is queued behind what has been launched there.
absl::Status Copy(OpKernelContext* context, const Tensor& from, Tensor* to) {
  const size_t bytes = from.NumElements() * tensorflow::DataTypeSize(from.dtype());
  if (bytes == 0) return absl::OkStatus();
  if (context->op_device_context() == nullptr || context->input_memory_type(0) == tensorflow::HOST_MEMORY) {
    std::memcpy(to->data(), from.data(), bytes);
    return absl::OkStatus();
  }
  absl::Status status;
  context->op_device_context()->CopyTensorInSameDevice(&from, static_cast<tensorflow::Device*>(context->device()), to,
                                                       [&status](const absl::Status& done) { status = done; });
  return status;
}

// How many rows tensor `which` of all terms has together. InvalidArgument if one of them has other rows than expected.
absl::Status CountRows(OpKernelContext* context, const std::vector<const Term*>& terms, int which,
                       const TensorShape& row_shape, int64_t* rows) {
  *rows = 0;
  for (const Term* term : terms) {
    const Tensor& part = term->tensors[which];
    TensorShape row = part.shape();
    if (row.dims() > 0) row.RemoveDim(0);
    if (part.dims() == 0 || row != row_shape || part.dtype() != context->expected_output_dtype(which)) {
      return InvalidArgument("Gradient '", context->op_kernel().name(), "': a term is ",
                             tensorflow::DataTypeString(part.dtype()), part.shape().DebugString(),
                             ", expected rows of ", tensorflow::DataTypeString(context->expected_output_dtype(which)),
                             row_shape.DebugString());
    }
    *rows += part.dim_size(0);
  }
  return absl::OkStatus();
}

// Concatenates tensor `which` of all terms along axis 0.
absl::Status Concatenate(OpKernelContext* context, const std::vector<const Term*>& terms, int which,
                         const TensorShape& row_shape) {
  int64_t rows = 0;
  TFR_RETURN_IF_ERROR(CountRows(context, terms, which, row_shape, &rows));
  TensorShape shape = row_shape;
  shape.InsertDim(0, rows);
  Tensor* result = nullptr;
  TFR_RETURN_IF_ERROR(context->allocate_output(which, shape, &result));
  int64_t row = 0;
  for (const Term* term : terms) {
    const Tensor& part = term->tensors[which];
    const int64_t end = row + part.dim_size(0);
    Tensor to = result->Slice(row, end);
    row = end;
    TFR_RETURN_IF_ERROR(Copy(context, part, &to));
  }
  return absl::OkStatus();
}

}  // namespace

void ContributeOp::Compute(OpKernelContext* context) {
  SetVariant(context, Contributions(context->input(0), context->input(1)));
}

void ContributeNoneOp::Compute(OpKernelContext* context) { SetVariant(context, Contributions()); }

CollectOp::CollectOp(OpKernelConstruction* construction) : OpKernel(construction) {
  OP_REQUIRES_OK(construction, construction->GetAttr("first_shape", &row_shapes_[0]));
  OP_REQUIRES_OK(construction, construction->GetAttr("second_shape", &row_shapes_[1]));
}

void CollectOp::Compute(OpKernelContext* context) {
  const Contributions* contributions = ContributionsInTensor(context->input(0));
  OP_REQUIRES(context, contributions != nullptr,
              InvalidArgument("Gradient '", name(), "': its input is not what a gradient call returns"));
  const std::vector<const Contributions::Term*> terms = contributions->Terms();
  for (int which = 0; which < 2; ++which) {
    OP_REQUIRES_OK(context, Concatenate(context, terms, which, row_shapes_[which]));
  }
}

}  // namespace tensorflow_recursion
