// The passes that the library registers with TensorFlow when it is loaded: one list, in the order in which they run.
//
// TensorFlow sorts the passes of each grouping by their number, its own among them. A session's graph goes through the
// list from top to bottom: up to placement once, when the session places the whole graph (the default), and from there
// on once for each new set of fetches. With the switch off the passes run too, but for the optimizer.
// SPDX-License-Identifier: Apache-2.0
#include "cc/base/names.h"
#include "cc/passes/attach_handles_pass.h"
#include "cc/passes/composite_pass.h"
#include "cc/passes/expand_left_calls_pass.h"
#include "cc/passes/hide_callees_pass.h"
#include "cc/passes/prepare_graph_pass.h"
#include "cc/passes/recursion_optimizer.h"
#include "cc/passes/resolve_calls_pass.h"
#include "cc/passes/shield_bodies_pass.h"
#include "cc/passes/show_callees_pass.h"
#include "cc/passes/spread_calls_pass.h"
#include "cc/passes/verify_functions_pass.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/grappler/optimizers/custom_graph_optimizer_registry.h"

namespace tensorflow_recursion {
namespace {

using Grouping = tensorflow::OptimizationPassRegistry;

// 1. Before placement, on the whole graph.

// It is the first, because pass 10 of this grouping, which is TensorFlow's, lowers If and While to Switch and Merge,
// and crashes if functions do not fit.
REGISTER_OPTIMIZATION(Grouping::PRE_PLACEMENT, 0, VerifyFunctionsPass);
// After pass 10, as calls in branches and loops of the main graph are nodes of it only then. Before placement, which
// would put every call beside the resources that it passes. No later pass sees what the fetches do not need, whose
// names bodies must not take.
REGISTER_OPTIMIZATION(Grouping::PRE_PLACEMENT, 1000, PrepareGraphPass);

// 2. TensorFlow places the graph: every node has a device from here on.

// It comes at once, because nobody else is to see the stand-ins that calls read instead of resources for the time of
// placement.
REGISTER_OPTIMIZATION(Grouping::POST_PLACEMENT, 0, AttachHandlesPass);

// 3. Grappler, which has pruned the graph to what the fetches need.

// This is the transformation itself: calls are replaced by Call and Return operators, and the bodies of the functions
// are added to the graph. A session's own optimizer runs at the end of Grappler's first iteration, so that the stock
// ones see the transformed graph in the second.
REGISTER_GRAPH_OPTIMIZER_AS(RecursionOptimizer, kOptimizerName);

// 4. After Grappler.

// Grappler may have given up: it does so silently when one of the stock optimizers fails, when it takes too long, and
// for some feeds. The calls that are left are transformed here. Those that cannot be transformed are told to the user.
REGISTER_OPTIMIZATION(Grouping::POST_REWRITE_FOR_EXEC, -2, ExpandLeftCallsPass);
// These are for the calls that were not transformed. Which function such a call runs depends on what is fetched, and is
// chosen before their functions are hidden.
REGISTER_OPTIMIZATION(Grouping::POST_REWRITE_FOR_EXEC, -1, ResolveCallsPass);
// XLA's passes run between these two and must not follow calls from body to body.
REGISTER_OPTIMIZATION(Grouping::POST_REWRITE_FOR_EXEC, 0, HideCalleesPass);
REGISTER_OPTIMIZATION(Grouping::POST_REWRITE_FOR_EXEC, 1000, ShowCalleesPass);
// The last pass before TensorFlow cuts the graph into one partition for each device: the last one that sees all parts
// of a body, and no pass afterwards adds a node to a body or moves one.
REGISTER_OPTIMIZATION(Grouping::POST_REWRITE_FOR_EXEC, 2000, SpreadCallsPass);

// 5. On the partitions.

// TensorFlow's passes run between these two; the last of them rewrites operators for oneDNN, which would make bodies
// slower. Once a body is inside of the composite's node, nobody else sees it.
REGISTER_OPTIMIZATION(Grouping::POST_PARTITIONING, 0, ShieldBodiesPass);
REGISTER_OPTIMIZATION(Grouping::POST_PARTITIONING, 1000, CompositePass);

}  // namespace
}  // namespace tensorflow_recursion
