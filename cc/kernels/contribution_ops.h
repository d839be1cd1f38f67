// Computes the gradient of a weight over all frames, by the operators Contribute, ContributeNone, ContributeView,
// Collect and Total.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_CONTRIBUTION_OPS_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_CONTRIBUTION_OPS_H_

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow_recursion {

// Makes a sum of one term, which consists of input 0 and input 1.
class ContributeOp : public tensorflow::OpKernel {
 public:
  explicit ContributeOp(tensorflow::OpKernelConstruction* construction);
  void Compute(tensorflow::OpKernelContext* context) override;

 private:
  int part_ = 0;
};

// Makes a sum without terms, which is zero.
class ContributeNoneOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(tensorflow::OpKernelContext* context) override;
};

// Yields the first tensors of all terms of a part, and the second tensors of these, each concatenated along axis 0.
// Attributes first_shape and second_shape give the shape of a row of each, as there may be no term to take it from; a
// dimension that they leave open is 0 then.
class CollectOp : public tensorflow::OpKernel {
 public:
  explicit CollectOp(tensorflow::OpKernelConstruction* construction);
  void Compute(tensorflow::OpKernelContext* context) override;

 private:
  int part_ = 0;
  tensorflow::PartialTensorShape row_shapes_[2];
};

// Passes its first input on: Total, ContributeView and BranchInput.
class FirstInputOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(tensorflow::OpKernelContext* context) override { context->set_output(0, context->input(0)); }
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_CONTRIBUTION_OPS_H_
