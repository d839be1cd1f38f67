// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/contributions.h"

#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/base/status.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/variant_op_registry.h"

namespace tensorflow_recursion {

using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::TypeIndex;
using tensorflow::UnaryVariantOpRegistry;
using tensorflow::Variant;
using tensorflow::VariantDeviceCopyDirection;
namespace variant_op_registry_fn_registration = tensorflow::variant_op_registry_fn_registration;  // for the macros

// A pair of tensors, or the sum of two of its kind.
struct Contributions::Term {
  std::atomic<int> references{1};
  Term* left = nullptr;
  Term* right = nullptr;
  Tensor tensors[2];
};

namespace {

using Term = Contributions::Term;

Term* Ref(Term* term) {
  if (term != nullptr) term->references.fetch_add(1, std::memory_order_relaxed);
  return term;
}

// A sum may be as deep as the recursion was.
void Unref(Term* term) {
  std::vector<Term*> work;
  while (true) {
    if (term != nullptr && term->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      if (term->left != nullptr) work.push_back(term->left);
      if (term->right != nullptr) work.push_back(term->right);
      delete term;
    }
    if (work.empty()) return;
    term = work.back();
    work.pop_back();
  }
}

void SetVariant(OpKernelContext* context, Contributions contributions) {
  Tensor result(tensorflow::DT_VARIANT, TensorShape({}));
  result.scalar<Variant>()() = std::move(contributions);
  context->set_output(0, result);
}

absl::Status Add(OpKernelContext* /*context*/, const Contributions& a, const Contributions& b, Contributions* sum) {
  *sum = Contributions::Sum(a, b);
  return absl::OkStatus();
}

absl::Status ZerosLike(OpKernelContext* /*context*/, const Contributions& /*like*/, Contributions* zero) {
  *zero = Contributions();
  return absl::OkStatus();
}

REGISTER_UNARY_VARIANT_BINARY_OP_FUNCTION(tensorflow::ADD_VARIANT_BINARY_OP, tensorflow::DEVICE_CPU, Contributions,
                                          Add);
REGISTER_UNARY_VARIANT_BINARY_OP_FUNCTION(tensorflow::ADD_VARIANT_BINARY_OP, tensorflow::DEVICE_GPU, Contributions,
                                          Add);
REGISTER_UNARY_VARIANT_UNARY_OP_FUNCTION(tensorflow::ZEROS_LIKE_VARIANT_UNARY_OP, tensorflow::DEVICE_CPU, Contributions,
                                         ZerosLike);
REGISTER_UNARY_VARIANT_UNARY_OP_FUNCTION(tensorflow::ZEROS_LIKE_VARIANT_UNARY_OP, tensorflow::DEVICE_GPU, Contributions,
                                         ZerosLike);

// Between devices, and between a device and the host.
absl::Status CopyTerms(const Contributions& from, Contributions* to,
                       const UnaryVariantOpRegistry::AsyncTensorDeviceCopyFn& copy) {
  for (const Term* term : from.Terms()) {
    Tensor first, second;
    TFR_RETURN_IF_ERROR(copy(term->tensors[0], &first));
    TFR_RETURN_IF_ERROR(copy(term->tensors[1], &second));
    *to = Contributions::Sum(*to, Contributions(std::move(first), std::move(second)));
  }
  return absl::OkStatus();
}

INTERNAL_REGISTER_UNARY_VARIANT_DEVICE_COPY_FUNCTION(Contributions, VariantDeviceCopyDirection::HOST_TO_DEVICE,
                                                     CopyTerms);
INTERNAL_REGISTER_UNARY_VARIANT_DEVICE_COPY_FUNCTION(Contributions, VariantDeviceCopyDirection::DEVICE_TO_HOST,
                                                     CopyTerms);
INTERNAL_REGISTER_UNARY_VARIANT_DEVICE_COPY_FUNCTION(Contributions, VariantDeviceCopyDirection::DEVICE_TO_DEVICE,
                                                     CopyTerms);

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

// Concatenates tensor `which` of all terms along axis 0.
absl::Status Concatenate(OpKernelContext* context, const std::vector<const Term*>& terms, int which,
                         const TensorShape& row_shape) {
  int64_t rows = 0;
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
    rows += part.dim_size(0);
  }
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

Contributions::Contributions(Tensor first, Tensor second) : term_(new Term) {
  term_->tensors[0] = std::move(first);
  term_->tensors[1] = std::move(second);
}

Contributions::Contributions(const Contributions& other) : term_(Ref(other.term_)) {}

Contributions::Contributions(Contributions&& other) noexcept : term_(std::exchange(other.term_, nullptr)) {}

Contributions& Contributions::operator=(Contributions other) noexcept {
  std::swap(term_, other.term_);
  return *this;
}

Contributions::~Contributions() { Unref(term_); }

Contributions Contributions::Sum(const Contributions& a, const Contributions& b) {
  if (a.term_ == nullptr) return b;
  if (b.term_ == nullptr) return a;
  auto* sum = new Term;
  sum->left = Ref(a.term_);
  sum->right = Ref(b.term_);
  return Contributions(sum);
}

std::vector<const Contributions::Term*> Contributions::Terms() const {
  std::vector<const Term*> terms;
  std::vector<const Term*> work;
  if (term_ != nullptr) work.push_back(term_);
  while (!work.empty()) {
    const Term* term = work.back();
    work.pop_back();
    if (term->left == nullptr) {
      terms.push_back(term);
      continue;
    }
    work.push_back(term->right);
    work.push_back(term->left);
  }
  return terms;
}

std::string Contributions::DebugString() const { return absl::StrCat("Contributions(", Terms().size(), " terms)"); }

void ContributeOp::Compute(OpKernelContext* context) {
  SetVariant(context, Contributions(context->input(0), context->input(1)));
}

void ContributeNoneOp::Compute(OpKernelContext* context) { SetVariant(context, Contributions()); }

CollectOp::CollectOp(OpKernelConstruction* construction) : OpKernel(construction) {
  OP_REQUIRES_OK(construction, construction->GetAttr("first_shape", &row_shapes_[0]));
  OP_REQUIRES_OK(construction, construction->GetAttr("second_shape", &row_shapes_[1]));
}

void CollectOp::Compute(OpKernelContext* context) {
  const Tensor& input = context->input(0);
  const Contributions* contributions = input.dims() == 0 ? input.scalar<Variant>()().get<Contributions>() : nullptr;
  OP_REQUIRES(context, contributions != nullptr,
              InvalidArgument("Gradient '", name(), "': its input is not what a gradient call returns"));
  const std::vector<const Contributions::Term*> terms = contributions->Terms();
  for (int which = 0; which < 2; ++which) {
    OP_REQUIRES_OK(context, Concatenate(context, terms, which, row_shapes_[which]));
  }
}

}  // namespace tensorflow_recursion
