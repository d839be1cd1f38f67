// The gradient of a weight that every frame of a recursion uses, as a sum that is not computed yet.
//
// Each frame adds a term: for `x @ w` the pair (x, gradient of x @ w), of which the product is the frame's share in the
// gradient of w. The sum is handed up the recursion as a list of such pairs, and is computed once, where the gradient
// was asked for. A weight that is used in several ways, as it is and transposed for example, has terms of several
// parts.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_VALUES_CONTRIBUTIONS_H_
#define TENSORFLOW_RECURSION_CC_VALUES_CONTRIBUTIONS_H_

#include <atomic>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "cc/values/block_pool.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/variant_tensor_data.h"

namespace tensorflow_recursion {

// One node of a sum: either a pair of tensors, which belongs to a part, or the sum of the terms `left` and `right`.
struct ContributionTerm {
  std::atomic<int> references{1};
  int part = 0;
  ContributionTerm* left = nullptr;
  ContributionTerm* right = nullptr;
  tensorflow::Tensor tensors[2];

  static void* operator new(size_t bytes) { return TakeBlock(bytes); }
  static void operator delete(void* block, size_t bytes) { GiveBlock(block, bytes); }
};

// A sum of terms, each a pair of tensors, that is not computed yet. It is a Value of kind kContributions in the
// executor and a tensor of DT_VARIANT outside of it. It is immutable and shared by counted references. Adding two of
// them takes constant time; freeing one uses no stack, however deep it is.
class Contributions {
 public:
  using Term = ContributionTerm;

  Contributions() = default;  // no terms: zero
  Contributions(tensorflow::Tensor first, tensorflow::Tensor second, int part = 0);
  Contributions(const Contributions& other);
  Contributions(Contributions&& other) noexcept;
  Contributions& operator=(Contributions other) noexcept;
  ~Contributions();

  static Contributions Sum(const Contributions& a, const Contributions& b);

  // These turn the pointer that a Value holds (nullptr for zero) into contributions and back. The reference moves
  // along.
  static Contributions Own(Term* term) { return Contributions(term); }
  Term* Release() { return std::exchange(term_, nullptr); }

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

// The scalar of DT_VARIANT that stands for such a sum outside the executor.
tensorflow::Tensor BoxContributions(Contributions contributions);

// The contributions in a tensor of any type; nullptr if it holds none.
const Contributions* ContributionsInTensor(const tensorflow::Tensor& tensor);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_CONTRIBUTIONS_H_
