// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/concat_gradient_op.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::TensorShapeUtils;

// The parts come behind the axis and the gradient.
constexpr int kFirstPart = 2;

using SizesOfPart = std::vector<int64_t>;

absl::Status ReadSizes(const Tensor& part, bool is_shape, int index, SizesOfPart* sizes) {
  if (!is_shape) {
    for (int d = 0; d < part.dims(); ++d) sizes->push_back(part.dim_size(d));
    return absl::OkStatus();
  }
  if (!TensorShapeUtils::IsVector(part.shape())) {
    return InvalidArgument("input ", index, " should be a vector, but got shape ", part.shape().DebugString());
  }
  const auto given = part.vec<int32_t>();
  sizes->assign(given.data(), given.data() + given.size());
  return absl::OkStatus();
}

std::string Listed(const SizesOfPart& sizes) { return absl::StrCat("[", absl::StrJoin(sizes, " "), "]"); }

// Fails with the errors of ConcatOffset.
absl::Status CheckTogether(const std::vector<SizesOfPart>& parts, int64_t given_axis, int64_t* axis) {
  const auto dims = static_cast<int64_t>(parts[0].size());
  *axis = given_axis < 0 ? given_axis + dims : given_axis;
  if (*axis < 0 || *axis >= dims) {
    return InvalidArgument("Concat dim is out of range: ", given_axis, " vs. ", dims);
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    if (static_cast<int64_t>(parts[i].size()) != dims) {
      return InvalidArgument("input ", i, " should contain ", dims, " elements, but got ", parts[i].size());
    }
    for (int64_t d = 0; d < dims; ++d) {
      if (d == *axis || parts[i][d] == parts[0][d]) continue;
      return InvalidArgument("All dimensions except ", *axis, " must match. Input ", i, " has shape ", Listed(parts[i]),
                             " and doesn't match input 0 with shape ", Listed(parts[0]), ".");
    }
  }
  return absl::OkStatus();
}

// Fails with the errors of Slice, for a piece that begins at `begin` along the axis.
absl::Status CheckPiece(const Tensor& gradient, const SizesOfPart& sizes, int64_t axis, int64_t begin) {
  if (static_cast<int64_t>(sizes.size()) != gradient.dims()) {
    return InvalidArgument("Expected begin and size arguments to be 1-D tensors of size ", gradient.dims(),
                           ", but got shapes [", sizes.size(), "] and [", sizes.size(), "] instead.");
  }
  for (int d = 0; d < gradient.dims(); ++d) {
    const int64_t extent = gradient.dim_size(d);
    const int64_t first = d == axis ? begin : 0;
    if (first > extent) return InvalidArgument("Expected begin[", d, "] in [0, ", extent, "], but got ", first);
    if (sizes[d] <= extent - first) continue;
    return InvalidArgument("Expected size[", d, "] in [0, ", extent - first, "], but got ", sizes[d]);
  }
  return absl::OkStatus();
}

// Whether a piece is as large as the gradient in all dimensions from `first` on.
bool IsWhole(const Tensor& gradient, const SizesOfPart& sizes, int first) {
  for (int d = first; d < gradient.dims(); ++d) {
    if (sizes[d] != gradient.dim_size(d)) return false;
  }
  return true;
}

// Copies the piece that begins at `begin` along the axis. It copies at once what lies side by side in both tensors.
void CopyPiece(const Tensor& gradient, int64_t axis, int64_t begin, Tensor* piece) {
  int inner = gradient.dims() - 1;  // in the dimensions behind it, the piece is as large as the gradient
  int64_t unit = tensorflow::DataTypeSize(gradient.dtype());
  while (inner > axis && piece->dim_size(inner) == gradient.dim_size(inner)) unit *= gradient.dim_size(inner--);
  const int64_t run = piece->dim_size(inner) * unit;
  auto* to = static_cast<char*>(piece->data());
  const char* const end = to + piece->TotalBytes();
  for (int64_t i = 0; to != end; ++i, to += run) {
    int64_t left = i, offset = inner == axis ? begin : 0, scale = gradient.dim_size(inner);
    for (int d = inner - 1; d >= 0; --d) {
      offset += (left % piece->dim_size(d) + (d == axis ? begin : 0)) * scale;
      left /= piece->dim_size(d);
      scale *= gradient.dim_size(d);
    }
    std::memcpy(to, static_cast<const char*>(gradient.data()) + offset * unit, run);
  }
}

absl::Status SetPiece(OpKernelContext* context, int index, const SizesOfPart& sizes, int64_t axis, int64_t begin) {
  const Tensor& gradient = context->input(1);
  TensorShape shape;
  TFR_RETURN_IF_ERROR(TensorShape::BuildTensorShape(sizes, &shape));
  if (axis == 0 && shape.num_elements() > 0 && IsWhole(gradient, sizes, 1)) {
    const Tensor rows = gradient.Slice(begin, begin + sizes[0]);
    if (rows.IsAligned()) {  // then the piece shares the gradient's memory, as in TensorFlow's Slice
      context->set_output(index, rows);
      return absl::OkStatus();
    }
  }
  Tensor* piece = nullptr;
  TFR_RETURN_IF_ERROR(context->allocate_output(index, shape, &piece));
  if (shape.num_elements() > 0) CopyPiece(gradient, axis, begin, piece);
  return absl::OkStatus();
}

}  // namespace

ConcatGradientOp::ConcatGradientOp(tensorflow::OpKernelConstruction* construction) : OpKernel(construction) {
  OP_REQUIRES_OK(construction, construction->GetAttr("are_shapes", &are_shapes_));
  OP_REQUIRES(construction, tensorflow::DataTypeCanUseMemcpy(input_type(1)),
              InvalidArgument("A gradient is of numbers, got ", tensorflow::DataTypeString(input_type(1))));
  const bool fits = static_cast<int>(are_shapes_.size()) == num_inputs() - kFirstPart &&
                    num_outputs() <= static_cast<int>(are_shapes_.size());
  OP_REQUIRES(construction, fits,
              InvalidArgument("are_shapes must say of each of the ", num_inputs() - kFirstPart,
                              " parts whether it is a shape, got ", are_shapes_.size()));
  for (int i = 0; i < num_outputs(); ++i) {
    const bool is_readable = !are_shapes_[i] || input_type(kFirstPart + i) == tensorflow::DT_INT32;
    OP_REQUIRES(construction, is_readable, InvalidArgument("A shape must be of int32, part ", i, " is not"));
  }
}

void ConcatGradientOp::Compute(OpKernelContext* context) {
  const Tensor& given_axis = context->input(0);
  OP_REQUIRES(context, TensorShapeUtils::IsScalar(given_axis.shape()),
              InvalidArgument("Concat dim tensor should be a scalar integer, but got shape ",
                              given_axis.shape().DebugString()));
  std::vector<SizesOfPart> parts(num_outputs());
  for (int i = 0; i < num_outputs(); ++i) {
    OP_REQUIRES_OK(context, ReadSizes(context->input(kFirstPart + i), are_shapes_[i], i, &parts[i]));
  }
  int64_t axis = 0;
  OP_REQUIRES_OK(context, CheckTogether(parts, given_axis.scalar<int32_t>()(), &axis));
  int64_t begin = 0;
  for (int i = 0; i < num_outputs(); begin += parts[i][axis], ++i) {
    OP_REQUIRES_OK(context, CheckPiece(context->input(1), parts[i], axis, begin));
    OP_REQUIRES_OK(context, SetPiece(context, i, parts[i], axis, begin));
  }
}

}  // namespace tensorflow_recursion
