// Everything the library registers with TensorFlow when it is loaded, apart from operator schemas.
// SPDX-License-Identifier: Apache-2.0
#include "cc/base/names.h"
#include "cc/ops/stray_kernels.h"
#include "cc/runtime/composite_pass.h"
#include "cc/runtime/contributions.h"
#include "cc/runtime/hide_callees.h"
#include "cc/runtime/invoke_op.h"
#include "cc/runtime/record_ops.h"
#include "cc/runtime/run_op.h"
#include "cc/transform/prepare_graph.h"
#include "cc/transform/recursion_optimizer.h"
#include "cc/transform/resolve_calls.h"
#include "cc/transform/spread_calls.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/grappler/optimizers/custom_graph_optimizer_registry.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DEVICE_CPU;

// Kernels.
REGISTER_KERNEL_BUILDER(Name("Recursion>Invoke").Device(DEVICE_CPU), InvokeOp);
REGISTER_KERNEL_BUILDER(Name("Recursion>Retain").Device(DEVICE_CPU), RetainOp);
REGISTER_KERNEL_BUILDER(Name("Recursion>Recall").Device(DEVICE_CPU), RecallOp);
REGISTER_KERNEL_BUILDER(Name("Recursion>Entry").Device(DEVICE_CPU), StrayOp);
REGISTER_KERNEL_BUILDER(Name("Recursion>Trigger").Device(DEVICE_CPU), StrayOp);
REGISTER_KERNEL_BUILDER(Name("Recursion>Result").Device(DEVICE_CPU), StrayOp);
REGISTER_KERNEL_BUILDER(Name("Recursion>Call").Device(DEVICE_CPU), StrayOp);
REGISTER_KERNEL_BUILDER(Name("Recursion>Return").Device(DEVICE_CPU), StrayOp);
REGISTER_KERNEL_BUILDER(Name("Recursion>Opened").Device(DEVICE_CPU), StrayOp);
REGISTER_KERNEL_BUILDER(Name("Recursion>Open").Device(DEVICE_CPU), StrayOp);
REGISTER_KERNEL_BUILDER(Name("Recursion>Anchor").Device(DEVICE_CPU), StrayOp);
REGISTER_KERNEL_BUILDER(Name("Recursion>Run").Device(DEVICE_CPU), RunOp);
REGISTER_KERNEL_BUILDER(Name("Recursion>Contribute").Device(DEVICE_CPU), ContributeOp);
REGISTER_KERNEL_BUILDER(Name("Recursion>ContributeNone").Device(DEVICE_CPU), ContributeNoneOp);
REGISTER_KERNEL_BUILDER(Name("Recursion>Collect").Device(DEVICE_CPU), CollectOp);
REGISTER_KERNEL_BUILDER(Name("Recursion>Total").Device(DEVICE_CPU), TotalOp);

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
