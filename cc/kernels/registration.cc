// Everything the library registers with TensorFlow when it is loaded, apart from operator schemas.
// SPDX-License-Identifier: Apache-2.0
#include "cc/base/names.h"
#include "cc/expand/resolve_calls.h"
#include "cc/kernels/contributions.h"
#include "cc/kernels/invoke_op.h"
#include "cc/kernels/record_ops.h"
#include "cc/kernels/run_op.h"
#include "cc/kernels/stray_kernels.h"
#include "cc/passes/composite.h"
#include "cc/passes/hide_callees.h"
#include "cc/passes/prepare_graph.h"
#include "cc/passes/recursion_optimizer.h"
#include "cc/passes/spread_calls.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/grappler/optimizers/custom_graph_optimizer_registry.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataTypeVector;
using tensorflow::DEVICE_CPU;
using tensorflow::DEVICE_DEFAULT;

// What may be in a device's own memory. TensorFlow keeps int32, which sizes and indices are made of, in the host's
// for any device, and what has no plain bytes (strings, resources) of its own accord.
const DataTypeVector& TypesOnDevice() {
  static const auto* const types = [] {
    auto* all = new DataTypeVector;
    for (const tensorflow::DataType type : tensorflow::kAllTypes) {
      if (type != tensorflow::DT_INT32) all->push_back(type);
    }
    return all;
  }();
  return *types;
}

// Kernels. DEVICE_DEFAULT: any device that is no CPU.
#define REGISTER_KERNEL(op, kernel, ...)                                     \
  REGISTER_KERNEL_BUILDER(Name("Recursion>" op).Device(DEVICE_CPU), kernel); \
  REGISTER_KERNEL_BUILDER(Name("Recursion>" op).Device(DEVICE_DEFAULT) __VA_ARGS__, kernel)
// One that carries a `value` of type T.
#define REGISTER_CARRIER(op, ...)                                                                                \
  REGISTER_KERNEL(op, StrayOp, .TypeConstraint("T", TypesOnDevice()) __VA_ARGS__);                               \
  REGISTER_KERNEL_BUILDER(                                                                                       \
      Name("Recursion>" op).Device(DEVICE_DEFAULT).TypeConstraint<int32_t>("T").HostMemory("value") __VA_ARGS__, \
      StrayOp)

// A call that was not asked to be elsewhere is on a CPU: dynamic execution needs a kernel of everything in the body
// where the call is. Where a static body goes is for its own operators to say.
REGISTER_KERNEL_BUILDER(Name("Recursion>Invoke").Device(DEVICE_CPU).Priority(1), InvokeOp);
REGISTER_KERNEL_BUILDER(Name("Recursion>Invoke").Device(DEVICE_DEFAULT), InvokeOp);
REGISTER_KERNEL("Retain", RetainOp);
REGISTER_KERNEL("Recall", RecallOp);
REGISTER_CARRIER("Entry");
REGISTER_CARRIER("Result");
REGISTER_CARRIER("Call");
REGISTER_CARRIER("Return", .HostMemory("keep_alives"));
REGISTER_KERNEL("FrameStart", StrayOp);
REGISTER_KERNEL("AnnounceCall", StrayOp, .HostMemory("opened"));
REGISTER_KERNEL("JoinCall", StrayOp, .HostMemory("opened"));
REGISTER_KERNEL("KeepAlive", StrayOp, .HostMemory("token"));
REGISTER_KERNEL("Run", RunOp);
REGISTER_KERNEL("Contribute", ContributeOp);
REGISTER_KERNEL("ContributeNone", ContributeNoneOp);
REGISTER_KERNEL("Collect", CollectOp);
REGISTER_KERNEL("Total", TotalOp);

// Passes.
REGISTER_GRAPH_OPTIMIZER_AS(RecursionOptimizer, kOptimizerName);
// Before and after TensorFlow lowers control flow, which is phase 10.
REGISTER_OPTIMIZATION(tensorflow::OptimizationPassRegistry::PRE_PLACEMENT, 0, VerifyFunctionsPass);
REGISTER_OPTIMIZATION(tensorflow::OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, -1, ResolveCallsPass);
// Before and after XLA's passes.
REGISTER_OPTIMIZATION(tensorflow::OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, 0, HideCalleesPass);
REGISTER_OPTIMIZATION(tensorflow::OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, 1000, ShowCalleesPass);
// The last before the graph is partitioned.
REGISTER_OPTIMIZATION(tensorflow::OptimizationPassRegistry::POST_REWRITE_FOR_EXEC, 2000, SpreadCallsPass);
REGISTER_OPTIMIZATION(tensorflow::OptimizationPassRegistry::PRE_PLACEMENT, 1000, PrepareGraphPass);
REGISTER_OPTIMIZATION(tensorflow::OptimizationPassRegistry::POST_PLACEMENT, 0, AttachHandlesPass);
// Before and after every stock pass on the partitions (the last of which rewrites operators for oneDNN).
REGISTER_OPTIMIZATION(tensorflow::OptimizationPassRegistry::POST_PARTITIONING, 0, ShieldBodiesPass);
REGISTER_OPTIMIZATION(tensorflow::OptimizationPassRegistry::POST_PARTITIONING, 1000, CompositePass);

}  // namespace
}  // namespace tensorflow_recursion
