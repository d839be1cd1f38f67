// Names shared by every room: operators, attributes, options. Each is written once, here.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BASE_NAMES_H_
#define TENSORFLOW_RECURSION_CC_BASE_NAMES_H_

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace tensorflow_recursion {

// The Grappler optimizer, as users name it in RewriterConfig.custom_optimizers.
inline constexpr char kOptimizerName[] = "function_transformation";

// What the name of every operator of ours begins with.
inline constexpr char kOpPrefix[] = "Recursion>";

// What a user's graph holds: one operator per call, the callee in attribute `f`.
inline constexpr char kInvokeOp[] = "Recursion>Invoke";

// An Invoke has these attributes, besides those of its schema, if they apply to it.
// Its kernel makes a static graph of its own and runs that, if no other call of ours is around it.
inline constexpr char kStaticAttr[] = "_recursion_static";
// Options of such a call are attributes of it, this before the option's name: `_recursion_max_depth`.
inline constexpr char kOptionAttrPrefix[] = "_recursion_";
// A user has asked that it be on a type of device.
inline constexpr char kPinnedAttr[] = "_recursion_pinned";
// It is in a function's graph, whose operators may (or may not) go to other devices than they ask for.
inline constexpr char kSoftPlacementAttr[] = "_recursion_soft_placement";
// Names that TakenNames (cc/expand/name_table.h) found in the whole graph, before anything was pruned.
inline constexpr char kTakenNamesAttr[] = "_recursion_taken_names";
// Its callee, while that is hidden from passes of TensorFlow that would follow the recursion.
inline constexpr char kHiddenCalleeAttr[] = "_recursion_callee";
// A node that stands for a resource while calls are placed: the tensor that it stands for.
inline constexpr char kHandleAttr[] = "_recursion_handle";

// What an invocation keeps for its gradient: written by `<f>__forward`, read by `<f>__backward`.
inline constexpr char kRetainOp[] = "Recursion>Retain";
inline constexpr char kRecallOp[] = "Recursion>Recall";
// A list that a record may hold, see ListOrZerosOp (cc/kernels/record_ops.h).
inline constexpr char kListOrZerosOp[] = "Recursion>ListOrZeros";

// A value that comes when what it waits for has run, see cc/kernels/has_run_op.h.
inline constexpr char kHasRunOp[] = "Recursion>HasRun";

// A gradient that is summed over all frames of a recursion, see cc/values/contributions.h.
inline constexpr char kContributeOp[] = "Recursion>Contribute";
inline constexpr char kContributeNoneOp[] = "Recursion>ContributeNone";
inline constexpr char kCollectOp[] = "Recursion>Collect";
inline constexpr char kTotalOp[] = "Recursion>Total";

// What several operators of TensorFlow become, which make the gradient of one concatenation.
inline constexpr char kConcatGradientOp[] = "Recursion>ConcatGradient";

// What the transformed graph holds.
inline constexpr char kEntryOp[] = "Recursion>Entry";  // argument `index` of a body: a merge point of all sites
inline constexpr char kFrameStartOp[] = "Recursion>FrameStart";  // fires once per frame of a body
inline constexpr char kResultOp[] = "Recursion>Result";          // output `index` of a body
inline constexpr char kCallOp[] = "Recursion>Call";              // pushes `call_id`, carries argument `index`
inline constexpr char kReturnOp[] = "Recursion>Return";          // pops `call_id`, carries output `index`
inline constexpr char kKeepAliveOp[] = "Recursion>KeepAlive";    // keeps the bodies of a call's SCC reachable

// What a call needs besides when parts of the callee are on several devices: `AnnounceCall`, on the device
// that decides whether the call lives, tells the `JoinCall` on every other one.
inline constexpr char kAnnounceCallOp[] = "Recursion>AnnounceCall";
inline constexpr char kJoinCallOp[] = "Recursion>JoinCall";
// Every node of a transformed graph says here which function's body it is part of; it is empty for the main graph.
// Nodes that stock optimizers add get it before the graph is partitioned. What partitioning adds (receives and the
// like) has none.
inline constexpr char kBodyAttr[] = "_recursion_body";
// Marks, in a graph that is about to be partitioned, what begins, ends and repeats a loop of which some variables may
// be dead while others live.
inline constexpr char kPartialLoopAttr[] = "_recursion_partial_loop";

// What a partition graph becomes: one kernel that runs the tagged executor over it.
inline constexpr char kRunOp[] = "Recursion>Run";
// A Run has these attributes, besides those of its schema, if they apply to it.
// Its graph is a function's own and holds calls that are to be made static (HoldsCallsToMakeStatic).
inline constexpr char kHoldsCallsAttr[] = "_recursion_holds_calls";
// Its graph is a function's, or a part of one.
inline constexpr char kIsOfFunctionAttr[] = "_recursion_is_of_function";
// The functions that its graph names: TensorFlow gives a part of a function only those that its nodes name.
inline constexpr char kFunctionsAttr[] = "_recursion_functions";

// TensorFlow's: of which inputs and outputs of a node, besides those its kernel says, are in the host's memory.
inline constexpr char kInputsOnHostAttr[] = "_input_hostmem";
inline constexpr char kOutputsOnHostAttr[] = "_output_hostmem";

inline constexpr char kFunctionAttr[] = "function";
inline constexpr char kIndexAttr[] = "index";
inline constexpr char kCallIdAttr[] = "call_id";
inline constexpr char kShapeAttr[] = "shape";
inline constexpr char kTypeAttr[] = "T";
inline constexpr char kCalleeAttr[] = "f";
inline constexpr char kArgumentTypesAttr[] = "Tin";
inline constexpr char kIgnoredTypesAttr[] = "Tignored";
inline constexpr char kResultTypesAttr[] = "Tout";
inline constexpr char kForwardAttr[] = "forward";
inline constexpr char kRecordOfAttr[] = "record_of";
inline constexpr char kOutputShapesAttr[] = "output_shapes";
inline constexpr char kMaxDepthAttr[] = "max_depth";
inline constexpr char kWorkersAttr[] = "workers";
inline constexpr char kCompileAttr[] = "compile";
inline constexpr char kOnFallbackOption[] = "on_fallback";
inline constexpr char kGraphAttr[] = "graph";

// A function that is named like an operator carries this behind its name in the graph.
inline constexpr char kMangledSuffix[] = "__fn";

// What a function becomes to be differentiated, before a number: `<f>__forward1` returns a record besides what `f`
// returns, `<f>__backward1` takes it. `<f>__gradient` is the gradient as a function to be differentiated.
inline constexpr char kForwardSuffix[] = "__forward";
inline constexpr char kBackwardSuffix[] = "__backward";
inline constexpr char kGradientSuffix[] = "__gradient";

// One trace of a function, in libraries where several may meet: `<f>__trace1`. Every trace of a process has its own
// number.
inline constexpr char kTraceSuffix[] = "__trace";

// A further body of a function, for calls that pass resources of other devices: `<f>__copy1`.
inline constexpr char kCopySuffix[] = "__copy";

// The name the user gave the function, for messages.
inline std::string UserName(absl::string_view function) {
  absl::string_view base = function;
  while (!base.empty() && absl::ascii_isdigit(static_cast<unsigned char>(base.back()))) base.remove_suffix(1);
  const bool is_numbered = base.size() < function.size();
  if (is_numbered && absl::ConsumeSuffix(&base, kCopySuffix)) return UserName(base);
  if (is_numbered && absl::ConsumeSuffix(&base, kTraceSuffix)) return UserName(base);
  if (absl::ConsumeSuffix(&base, kForwardSuffix)) return UserName(base);
  if (absl::ConsumeSuffix(&base, kBackwardSuffix) || absl::ConsumeSuffix(&base, kGradientSuffix)) {
    return absl::StrCat("gradient of ", UserName(base));
  }
  return std::string(absl::StripSuffix(function, kMangledSuffix));
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BASE_NAMES_H_
