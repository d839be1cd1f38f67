// The passes that the library registers with TensorFlow when it is loaded: one list, in the order in which they run.
//
// TensorFlow has groupings of passes, and runs those of one grouping, its own and ours, in the order of their numbers.
// A session's graph goes through the list from top to bottom: up to placement once, if the session places the whole
// graph (the default), and from there on once for each new set of fetches. If the switch is off, the passes run all the
// same, but not the optimizer.
// SPDX-License-Identifier: Apache-2.0
#include "cc/base/names.h"
#include "cc/passes/add_branch_inputs_pass.h"
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

// This is the first pass, because pass 10 of this grouping, which is TensorFlow's, lowers If and While to Switch and
// Merge, and crashes if functions do not fit.
REGISTER_OPTIMIZATION(Grouping::PRE_PLACEMENT, 0, VerifyFunctionsPass);
// This runs after pass 10, because only then are calls in branches and loops nodes of the main graph; and before
// placement, which would put every call beside the resources that it passes. Later passes do not see the nodes that the
// fetches do not need, whose names bodies must not take.
REGISTER_OPTIMIZATION(Grouping::PRE_PLACEMENT, 1000, PrepareGraphPass);

// 2. TensorFlow places the graph: every node has a device from here on.

// This runs right after placement, because nobody else is to see the stand-ins that calls read instead of resources
// during placement.
REGISTER_OPTIMIZATION(Grouping::POST_PLACEMENT, 0, AttachHandlesPass);
// Grappler comes next, which takes what one branch says of a shape for true everywhere. Placement need not see what is
// added.
REGISTER_OPTIMIZATION(Grouping::POST_PLACEMENT, 1, AddBranchInputsPass);

// 3. Grappler, which has pruned the graph to what the fetches need.

// This is the transformation itself: calls are replaced by Call and Return operators, and the bodies of the functions
// are added to the graph. Optimizers that a session's config names run at the end of Grappler's first iteration, so the
// stock ones see the transformed graph in the second.
REGISTER_GRAPH_OPTIMIZER_AS(RecursionOptimizer, kOptimizerName);

// 4. After Grappler.

// Grappler may have given up: it does so silently when one of the stock optimizers fails, when it takes too long, and
// for some feeds. The calls that are left are transformed here. Those that cannot be transformed are told to the user.
REGISTER_OPTIMIZATION(Grouping::POST_REWRITE_FOR_EXEC, -2, ExpandLeftCallsPass);
// This and the next two are for calls that were not transformed. Which function such a call runs depends on what is
// fetched; it is chosen before the functions are hidden.
REGISTER_OPTIMIZATION(Grouping::POST_REWRITE_FOR_EXEC, -1, ResolveCallsPass);
// XLA's passes run between these two and must not follow calls from body to body.
REGISTER_OPTIMIZATION(Grouping::POST_REWRITE_FOR_EXEC, 0, HideCalleesPass);
REGISTER_OPTIMIZATION(Grouping::POST_REWRITE_FOR_EXEC, 1000, ShowCalleesPass);
// This is the last pass before TensorFlow cuts the graph into one partition for each device. So it is the last one that
// sees all parts of a body, and no pass afterwards adds a node to a body or moves one.
REGISTER_OPTIMIZATION(Grouping::POST_REWRITE_FOR_EXEC, 2000, SpreadCallsPass);

// 5. On the partitions.

// TensorFlow's passes run between these two; the last of them rewrites operators for oneDNN, which would make bodies
// slower. Once a body is inside of the composite, no other pass sees it.
REGISTER_OPTIMIZATION(Grouping::POST_PARTITIONING, 0, ShieldBodiesPass);
REGISTER_OPTIMIZATION(Grouping::POST_PARTITIONING, 1000, CompositePass);

// 6. When the kernel of the composite, or of a call outside of sessions, makes its program: StaticProgram::Make
// (cc/kernels/static_program.cc) calls ReadReferencesByKernels (reference_reads.h) and then, on a CPU,
// MergeConcatGradients (concat_gradients.h). TensorFlow does not know of these, so they are not registered.

}  // namespace
}  // namespace tensorflow_recursion
