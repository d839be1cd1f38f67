// The gradient of a weight that every frame of a recursion uses, as a sum that is not computed yet.
//
// Each frame adds a term. The sum is handed up the recursion as a list of what its terms are made of, and is computed
// once, where the gradient was asked for.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_CONTRIBUTIONS_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_CONTRIBUTIONS_H_

#include <atomic>
#include <string>
#include <vector>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/variant_tensor_data.h"

namespace tensorflow_recursion {

// A value of DT_VARIANT: a sum of terms, each a pair of tensors, that nobody has computed yet. Immutable and
// shared by counted references; adding two takes constant time, and freeing one no stack.
class Contributions {
 public:
  struct Term;

  Contributions() = default;  // no terms: zero
  Contributions(tensorflow::Tensor first, tensorflow::Tensor second);
  Contributions(const Contributions& other);
  Contributions(Contributions&& other) noexcept;
  Contributions& operator=(Contributions other) noexcept;
  ~Contributions();

  static Contributions Sum(const Contributions& a, const Contributions& b);

  // The terms, in the order in which they were added.
  std::vector<const Term*> Terms() const;

  std::string TypeName() const { return "tensorflow_recursion::Contributions"; }
  void Encode(tensorflow::VariantTensorData* data) const { data->set_type_name(TypeName()); }
  bool Decode(const tensorflow::VariantTensorData& /*data*/) { return false; }
  std::string DebugString() const;

 private:
  explicit Contributions(Term* term) : term_(term) {}

  Term* term_ = nullptr;
};

// A pair of tensors; or the sum of two terms, and then without tensors of its own.
struct Contributions::Term {
  std::atomic<int> references{1};
  Term* left = nullptr;
  Term* right = nullptr;
  tensorflow::Tensor tensors[2];
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_CONTRIBUTIONS_H_
