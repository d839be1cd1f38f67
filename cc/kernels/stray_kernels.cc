// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/stray_kernels.h"

#include "cc/base/names.h"
#include "cc/base/status.h"

namespace tensorflow_recursion {

void StrayOp::Compute(tensorflow::OpKernelContext* ctx) {
  ctx->SetStatus(InvalidArgument("Node '", name(), "' (", type_string(), ") runs only inside a ", kRunOp,
                                 " node, that is in a graph which the optimizer '", kOptimizerName,
                                 "' has transformed in this process; was a transformed graph saved and loaded?"));
}

}  // namespace tensorflow_recursion
