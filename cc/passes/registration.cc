// The passes that the library registers with TensorFlow when it is loaded: one list, in the order in which they run.
//
// TensorFlow sorts the passes of each grouping by their number, its own among them. A session's graph goes through the
// list from top to bottom: up to placement once, when the session places the whole graph (the default), and from there
// on once for each new set of fetches.
// SPDX-License-Identifier: Apache-2.0
#include "cc/base/names.h"
#include "cc/expand/resolve_calls.h"
#include "cc/passes/composite.h"
#include "cc/passes/hide_callees.h"
#include "cc/passes/prepare_graph.h"
#include "cc/passes/recursion_optimizer.h"
#include "cc/passes/spread_calls.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/grappler/optimizers/custom_graph_optimizer_registry.h"

namespace tensorflow_recursion {
namespace {

using Grouping = tensorflow::OptimizationPassRegistry;

// 1. Before placement. Pass 10 of this grouping is TensorFlow's, which lowers If and While to Switch and Merge: the
// first of ours keeps malformed functions away from it, the second needs the lowered graph.
REGISTER_OPTIMIZATION(Grouping::PRE_PLACEMENT, 0, VerifyFunctionsPass);
REGISTER_OPTIMIZATION(Grouping::PRE_PLACEMENT, 1000, PrepareGraphPass);

// 2. TensorFlow places the graph: every node has a device from here on.
REGISTER_OPTIMIZATION(Grouping::POST_PLACEMENT, 0, AttachHandlesPass);

// 3. Grappler, which has pruned the graph to what the fetches need. This is the transformation itself: calls are
// replaced by Call and Return operators, and the bodies of the functions are added to the graph.
REGISTER_GRAPH_OPTIMIZER_AS(RecursionOptimizer, kOptimizerName);

// 4. After Grappler. What follows handles the calls that were not transformed, first of all.
REGISTER_OPTIMIZATION(Grouping::POST_REWRITE_FOR_EXEC, -1, ResolveCallsPass);
// XLA's passes run between these two and must not follow calls from body to body.
REGISTER_OPTIMIZATION(Grouping::POST_REWRITE_FOR_EXEC, 0, HideCalleesPass);
REGISTER_OPTIMIZATION(Grouping::POST_REWRITE_FOR_EXEC, 1000, ShowCalleesPass);
// The last pass before TensorFlow cuts the graph into one partition for each device.
REGISTER_OPTIMIZATION(Grouping::POST_REWRITE_FOR_EXEC, 2000, SpreadCallsPass);

// 5. On the partitions. TensorFlow's passes run between these two; the last of them rewrites operators for oneDNN,
// which would make bodies slower.
REGISTER_OPTIMIZATION(Grouping::POST_PARTITIONING, 0, ShieldBodiesPass);
REGISTER_OPTIMIZATION(Grouping::POST_PARTITIONING, 1000, CompositePass);

}  // namespace
}  // namespace tensorflow_recursion
