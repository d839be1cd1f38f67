// The gradient of a weight that every frame of a recursion uses is a sum over all frames. It is handed up
// the recursion unsummed, as what its terms are made of, and computed once by who asked for it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_CONTRIBUTIONS_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_CONTRIBUTIONS_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/op_kernel.h"
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

// Wraps input 0 and input 1 as one term.
class ContributeOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(tensorflow::OpKernelContext* context) override;
};

// Zero.
class ContributeNoneOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(tensorflow::OpKernelContext* context) override;
};

// The first and the second tensors of all terms, each set concatenated along axis 0; what a row of each is
// shaped like is attribute first_shape and second_shape, as there may be no term.
class CollectOp : public tensorflow::OpKernel {
 public:
  explicit CollectOp(tensorflow::OpKernelConstruction* construction);
  void Compute(tensorflow::OpKernelContext* context) override;

 private:
  tensorflow::TensorShape row_shapes_[2];
};

// Passes its first input on.
class TotalOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(tensorflow::OpKernelContext* context) override { context->set_output(0, context->input(0)); }
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_CONTRIBUTIONS_H_
