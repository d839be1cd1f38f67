// Runs dynamic calls.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_INVOCATION_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_INVOCATION_H_

#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow_recursion {

class InvokeOp;

// Whether a dynamic call of ours is around the kernel that `ctx` is for.
bool IsInsideOfInvocation(const tensorflow::OpKernelContext& ctx);

// Runs the callee of `kernel` with the kernel's inputs and outputs, and calls `done` when it has ended.
void StartInvocation(InvokeOp& kernel, tensorflow::OpKernelContext* ctx, tensorflow::AsyncOpKernel::DoneCallback done);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_INVOCATION_H_
