// Makes a value of the fact that something has run, so that a record can keep it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_HAS_RUN_OP_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_HAS_RUN_OP_H_

#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow_recursion {

// Sometimes the gradient of a branch has to wait for an operator of the branch, for example for a tf.py_function whose
// tape it takes. But no control edge leads from one function to another. So the branch returns the token of a HasRun
// that waits for the operator, and the gradient begins with a HasRun that reads the token. HasRun is stateful, because
// TensorFlow's optimizers would take it out otherwise, as they do with an Identity.
class HasRunOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;
  bool IsExpensive() override { return false; }
  void Compute(tensorflow::OpKernelContext* context) override;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_HAS_RUN_OP_H_
