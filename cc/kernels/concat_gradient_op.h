// Computes the gradient of a concatenation by one operator, see cc/passes/concat_gradients.h.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_CONCAT_GRADIENT_OP_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_CONCAT_GRADIENT_OP_H_

#include <vector>

#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow_recursion {

// Cuts input 1 along the axis that input 0 names into pieces as large as the parts that follow. Its errors are those of
// ConcatOffset and Slice. In frames its native kernel is tried first (cc/native/row_kernels.cc).
class ConcatGradientOp : public tensorflow::OpKernel {
 public:
  explicit ConcatGradientOp(tensorflow::OpKernelConstruction* construction);
  void Compute(tensorflow::OpKernelContext* context) override;

 private:
  // By part, whether the input is its shape, or else the part itself.
  std::vector<bool> are_shapes_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_CONCAT_GRADIENT_OP_H_
