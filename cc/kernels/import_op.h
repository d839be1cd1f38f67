// The kernel of the operator that says what to import.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_IMPORT_OP_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_IMPORT_OP_H_

#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow_recursion {

// Does nothing. A node has to have a kernel to be placed, also if it is never run.
class ImportOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;
  bool IsExpensive() override { return false; }
  void Compute(tensorflow::OpKernelContext* /*context*/) override {}
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_IMPORT_OP_H_
