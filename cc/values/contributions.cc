// SPDX-License-Identifier: Apache-2.0
#include "cc/values/contributions.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/variant_op_registry.h"

namespace tensorflow_recursion {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TypeIndex;
using tensorflow::UnaryVariantOpRegistry;
using tensorflow::Variant;
using tensorflow::VariantDeviceCopyDirection;
namespace variant_op_registry_fn_registration = tensorflow::variant_op_registry_fn_registration;  // for the macros

namespace {

using Term = Contributions::Term;

Term* Ref(Term* term) {
  if (term != nullptr) term->references.fetch_add(1, std::memory_order_relaxed);
  return term;
}

// Works off a list instead of calling itself, because a sum may be as deep as the recursion was.
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

absl::Status AddUp(OpKernelContext* /*context*/, const Contributions& a, const Contributions& b, Contributions* sum) {
  *sum = Contributions::Sum(a, b);
  return absl::OkStatus();
}

absl::Status ZerosLike(OpKernelContext* /*context*/, const Contributions& /*like*/, Contributions* zero) {
  *zero = Contributions();
  return absl::OkStatus();
}

REGISTER_UNARY_VARIANT_BINARY_OP_FUNCTION(tensorflow::ADD_VARIANT_BINARY_OP, tensorflow::DEVICE_CPU, Contributions,
                                          AddUp);
REGISTER_UNARY_VARIANT_BINARY_OP_FUNCTION(tensorflow::ADD_VARIANT_BINARY_OP, tensorflow::DEVICE_GPU, Contributions,
                                          AddUp);
REGISTER_UNARY_VARIANT_UNARY_OP_FUNCTION(tensorflow::ZEROS_LIKE_VARIANT_UNARY_OP, tensorflow::DEVICE_CPU, Contributions,
                                         ZerosLike);
REGISTER_UNARY_VARIANT_UNARY_OP_FUNCTION(tensorflow::ZEROS_LIKE_VARIANT_UNARY_OP, tensorflow::DEVICE_GPU, Contributions,
                                         ZerosLike);

// Copies terms between devices, and between a device and the host.
absl::Status CopyTerms(const Contributions& from, Contributions* to,
                       const UnaryVariantOpRegistry::AsyncTensorDeviceCopyFn& copy) {
  for (const Term* term : from.Terms()) {
    Tensor first, second;
    TFR_RETURN_IF_ERROR(copy(term->tensors[0], &first));
    TFR_RETURN_IF_ERROR(copy(term->tensors[1], &second));
    *to = Contributions::Sum(*to, Contributions(std::move(first), std::move(second), term->part));
  }
  return absl::OkStatus();
}

INTERNAL_REGISTER_UNARY_VARIANT_DEVICE_COPY_FUNCTION(Contributions, VariantDeviceCopyDirection::HOST_TO_DEVICE,
                                                     CopyTerms);
INTERNAL_REGISTER_UNARY_VARIANT_DEVICE_COPY_FUNCTION(Contributions, VariantDeviceCopyDirection::DEVICE_TO_HOST,
                                                     CopyTerms);
INTERNAL_REGISTER_UNARY_VARIANT_DEVICE_COPY_FUNCTION(Contributions, VariantDeviceCopyDirection::DEVICE_TO_DEVICE,
                                                     CopyTerms);

}  // namespace

Contributions::Contributions(Tensor first, Tensor second, int part) : term_(new Term) {
  term_->part = part;
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

Tensor BoxContributions(Contributions contributions) {
  Tensor tensor(tensorflow::DT_VARIANT, tensorflow::TensorShape({}));
  tensor.scalar<Variant>()() = std::move(contributions);
  return tensor;
}

const Contributions* ContributionsInTensor(const Tensor& tensor) {
  if (tensor.dtype() != tensorflow::DT_VARIANT || tensor.dims() != 0 || !tensor.IsInitialized()) return nullptr;
  return tensor.scalar<Variant>()().get<Contributions>();
}

std::string Contributions::DebugString() const { return absl::StrCat("Contributions(", Terms().size(), " terms)"); }

}  // namespace tensorflow_recursion
