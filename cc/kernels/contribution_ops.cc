// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/contribution_ops.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/values/contributions.h"
#include "cc/values/side_by_side.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/variant.h"

namespace tensorflow_recursion {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::PartialTensorShape;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::Variant;

namespace {

using Term = Contributions::Term;

void SetVariant(OpKernelContext* context, Contributions contributions) {
  context->set_output(0, BoxContributions(std::move(contributions)));
}

// Compares the shape dimension by dimension, because to build another shape for each term would cost time: terms have
// only a row or two, and there are many.

bool HasRows(const Tensor& part, tensorflow::DataType dtype, const TensorShape& row_shape) {
  if (part.dtype() != dtype || part.dims() != row_shape.dims() + 1) return false;
  for (int i = 0; i < row_shape.dims(); ++i) {
    if (part.dim_size(i + 1) != row_shape.dim_size(i)) return false;
  }
  return true;
}

// The shape of a row of tensor `which`: as stated, and where that is open, as in the first term; 0 if there is none.
// InvalidArgument if no tensor can have it.
absl::Status RowShape(const PartialTensorShape& stated, const std::vector<const Term*>& terms, int which,
                      TensorShape* shape) {
  const Tensor* const first = terms.empty() ? nullptr : &terms[0]->tensors[which];
  for (int i = 0; i < stated.dims(); ++i) {
    const int64_t of_term = first != nullptr && i + 1 < first->dims() ? first->dim_size(i + 1) : 0;
    TFR_RETURN_IF_ERROR(shape->AddDimWithStatus(stated.dim_size(i) < 0 ? of_term : stated.dim_size(i)));
  }
  return absl::OkStatus();
}

// Counts the rows that tensor `which` has in all terms together. InvalidArgument if one has other rows than expected.
absl::Status CountRows(OpKernelContext* context, const std::vector<const Term*>& terms, int which,
                       const TensorShape& row_shape, int64_t* rows) {
  const tensorflow::DataType dtype = context->expected_output_dtype(which);
  *rows = 0;
  for (const Term* term : terms) {
    const Tensor& part = term->tensors[which];
    if (!HasRows(part, dtype, row_shape)) {
      return InvalidArgument("Gradient '", context->op_kernel().name(), "': a term is ",
                             tensorflow::DataTypeString(part.dtype()), part.shape().DebugString(),
                             ", expected rows of ", tensorflow::DataTypeString(dtype), row_shape.DebugString());
    }
    *rows += part.dim_size(0);
  }
  return absl::OkStatus();
}

void CopyOnHost(OpKernelContext* context, const std::vector<const Term*>& terms, int which, Tensor* result) {
  std::vector<absl::string_view> pieces;
  pieces.reserve(terms.size());
  for (const Term* term : terms) pieces.push_back(term->tensors[which].tensor_data());
  CopySideBySide(pieces, result->data(), context->device()->tensorflow_cpu_worker_threads()->workers);
}

// Copies the tensors on a device that is no CPU. Each copy is queued behind all that has been launched there.
absl::Status CopyOnDevice(OpKernelContext* context, const std::vector<const Term*>& terms, int which, Tensor* result) {
  auto* const device = static_cast<tensorflow::Device*>(context->device());
  int64_t row = 0;
  for (const Term* term : terms) {
    const Tensor& part = term->tensors[which];
    const int64_t end = row + part.dim_size(0);
    Tensor to = result->Slice(row, end);
    row = end;
    if (part.NumElements() == 0) continue;
    absl::Status status;
    context->op_device_context()->CopyTensorInSameDevice(&part, device, &to,
                                                         [&status](const absl::Status& done) { status = done; });
    TFR_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

// Concatenates tensor `which` of all terms along axis 0.
absl::Status Concatenate(OpKernelContext* context, const std::vector<const Term*>& terms, int which,
                         const TensorShape& row_shape) {
  int64_t rows = 0;
  TFR_RETURN_IF_ERROR(CountRows(context, terms, which, row_shape, &rows));
  TensorShape shape = row_shape;
  TFR_RETURN_IF_ERROR(shape.InsertDimWithStatus(0, rows));
  Tensor* result = nullptr;
  TFR_RETURN_IF_ERROR(context->allocate_output(which, shape, &result));
  if (context->op_device_context() != nullptr && context->input_memory_type(0) != tensorflow::HOST_MEMORY) {
    return CopyOnDevice(context, terms, which, result);
  }
  CopyOnHost(context, terms, which, result);
  return absl::OkStatus();
}

}  // namespace

ContributeOp::ContributeOp(OpKernelConstruction* construction) : OpKernel(construction) {
  OP_REQUIRES_OK(construction, construction->GetAttr(kPartAttr, &part_));
}

void ContributeOp::Compute(OpKernelContext* context) {
  SetVariant(context, Contributions(context->input(0), context->input(1), part_));
}

void ContributeNoneOp::Compute(OpKernelContext* context) { SetVariant(context, Contributions()); }

CollectOp::CollectOp(OpKernelConstruction* construction) : OpKernel(construction) {
  OP_REQUIRES_OK(construction, construction->GetAttr(kPartAttr, &part_));
  const char* const attributes[] = {"first_shape", "second_shape"};
  for (int which = 0; which < 2; ++which) {
    OP_REQUIRES_OK(construction, construction->GetAttr(attributes[which], &row_shapes_[which]));
    OP_REQUIRES(construction, row_shapes_[which].dims() >= 0,
                InvalidArgument("Gradient '", name(), "': ", attributes[which], " has no rank"));
    const tensorflow::DataType dtype = output_type(which);
    OP_REQUIRES(construction, tensorflow::DataTypeCanUseMemcpy(dtype),
                InvalidArgument("Gradient '", name(), "': rows of ", tensorflow::DataTypeString(dtype),
                                " cannot be summed, expected numbers"));
  }
}

void CollectOp::Compute(OpKernelContext* context) {
  const Contributions* contributions = ContributionsInTensor(context->input(0));
  OP_REQUIRES(context, contributions != nullptr,
              InvalidArgument("Gradient '", name(), "': its input is not what a gradient call returns"));
  std::vector<const Term*> terms = contributions->Terms();
  terms.erase(std::remove_if(terms.begin(), terms.end(), [this](const Term* term) { return term->part != part_; }),
              terms.end());
  for (int which = 0; which < 2; ++which) {
    TensorShape row_shape;
    OP_REQUIRES_OK(context, RowShape(row_shapes_[which], terms, which, &row_shape));
    OP_REQUIRES_OK(context, Concatenate(context, terms, which, row_shape));
  }
}

}  // namespace tensorflow_recursion
