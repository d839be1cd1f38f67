// Reports operators that only our executor can run, in graphs that reach another one.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_STRAY_KERNELS_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_STRAY_KERNELS_H_

#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow_recursion {

// The kernel of Entry, FrameStart, Result, Call, Return, AnnounceCall, JoinCall and KeepAlive, which placement needs.
// To run it fails with an InvalidArgument that names the node and what should have run it.
class StrayOp : public tensorflow::OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(tensorflow::OpKernelContext* ctx) override;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_STRAY_KERNELS_H_
