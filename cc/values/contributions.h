// The gradient of a weight that every frame of a recursion uses, as a sum that is not computed yet.
//
// Each frame adds a term. The sum is handed up the recursion as a list of what its terms are made of, and is computed
// once, where the gradient was asked for.
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

// A pair of tensors; or the sum of two terms, and then without tensors of its own.
struct ContributionTerm {
  std::atomic<int> references{1};
  ContributionTerm* left = nullptr;
  ContributionTerm* right = nullptr;
  tensorflow::Tensor tensors[2];

  static void* operator new(size_t bytes) { return TakeBlock(bytes); }
  static void operator delete(void* block, size_t bytes) { GiveBlock(block, bytes); }
};

// A sum of terms, each a pair of tensors, that nobody has computed yet: a Value of kind kContributions in the executor,
// a value of DT_VARIANT outside of it. Immutable and shared by counted references; adding two takes constant time, and
// freeing one no stack.
class Contributions {
 public:
  using Term = ContributionTerm;

  Contributions() = default;  // no terms: zero
  Contributions(tensorflow::Tensor first, tensorflow::Tensor second);
  Contributions(const Contributions& other);
  Contributions(Contributions&& other) noexcept;
  Contributions& operator=(Contributions other) noexcept;
  ~Contributions();

  static Contributions Sum(const Contributions& a, const Contributions& b);

  // These turn the pointer that a Value holds (nullptr for zero) into contributions and back, with the reference that
  // goes with it.
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

// What a tensor of any type holds, or nullptr.
const Contributions* ContributionsInTensor(const tensorflow::Tensor& tensor);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_VALUES_CONTRIBUTIONS_H_
