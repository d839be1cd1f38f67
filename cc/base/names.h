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

// In a user's graph each call is one operator of this type, whose attribute `f` names the callee.
inline constexpr char kInvokeOp[] = "Recursion>Invoke";

// An Invoke has the following attributes, besides those of its schema, if they apply to it.
//
// Its kernel makes a static graph of its own and runs that, if no other call of ours is around it.
inline constexpr char kStaticAttr[] = "_recursion_static";
// Options of such a call are attributes of it, whose names begin with this, as in `_recursion_max_depth`.
inline constexpr char kOptionAttrPrefix[] = "_recursion_";
// The last of its inputs that are not passed on is a snapshot, see cc/kernels/snapshot_ops.h.
inline constexpr char kHasSnapshotAttr[] = "_recursion_has_snapshot";
// A user has asked that it be on a type of device.
inline constexpr char kPinnedAttr[] = "_recursion_pinned";
// It is in a function's graph, whose operators may (or may not) go to other devices than they ask for.
inline constexpr char kSoftPlacementAttr[] = "_recursion_soft_placement";
// Names that TakenNames (cc/expand/name_table.h) found in the whole graph, before anything was pruned.
inline constexpr char kTakenNamesAttr[] = "_recursion_taken_names";
// The call's callee, while it is hidden from passes of TensorFlow that would follow the recursion.
inline constexpr char kHiddenCalleeAttr[] = "_recursion_callee";

// While calls are placed, some nodes stand in for resources (cc/expand/handle_stand_ins.h). This attribute of theirs
// names the tensor that they stand for, as in "v:0".
inline constexpr char kHandleAttr[] = "_recursion_handle";

// These pack what an invocation keeps for its gradient into a record, in a forward function, and unpack the record, in
// the backward function.
inline constexpr char kRetainOp[] = "Recursion>Retain";
inline constexpr char kRecallOp[] = "Recursion>Recall";
// Hands on a list that a record may hold, see ListOrZerosOp (cc/kernels/record_ops.h).
inline constexpr char kListOrZerosOp[] = "Recursion>ListOrZeros";

// Hands on what a branch or an iteration reads, see cc/expand/branch_inputs.h.
inline constexpr char kBranchInputOp[] = "Recursion>BranchInput";

// Keep the values that variables have when a call begins, and make variables of them for whoever calls the function
// once more, see cc/kernels/snapshot_ops.h.
inline constexpr char kSnapshotOp[] = "Recursion>Snapshot";
inline constexpr char kVariablesOfOp[] = "Recursion>VariablesOf";
// Of both: which inputs of the call the variables are.
inline constexpr char kPositionsAttr[] = "positions";
inline constexpr char kAssignedAttr[] = "assigned";

// Yields a value when all that it waits for has run, see cc/kernels/has_run_op.h.
inline constexpr char kHasRunOp[] = "Recursion>HasRun";

// Does nothing. It is the first node of the graph in a SavedModel with calls: where that is loaded by a process without
// this library, TensorFlow's error names the first operator that it does not know, and this name says what to import.
inline constexpr char kImportOp[] = "Recursion>Import_tensorflow_recursion";

// These sum a gradient over all frames of a recursion, see cc/values/contributions.h.
inline constexpr char kContributeOp[] = "Recursion>Contribute";
inline constexpr char kContributeNoneOp[] = "Recursion>ContributeNone";
inline constexpr char kCollectOp[] = "Recursion>Collect";
inline constexpr char kTotalOp[] = "Recursion>Total";
// Hands on the terms for what a body makes of a weight: they are terms of the weight, of another part.
inline constexpr char kContributeViewOp[] = "Recursion>ContributeView";
// Of Contribute and Collect: which part of the gradient a term belongs to.
inline constexpr char kPartAttr[] = "part";

// Makes the gradient of one concatenation, in place of several operators of TensorFlow.
inline constexpr char kConcatGradientOp[] = "Recursion>ConcatGradient";

// A transformed graph holds the following operators.
//
// Argument `index` enters a body at an Entry, whichever call site it comes from. Output `index` leaves it at a Result.
inline constexpr char kEntryOp[] = "Recursion>Entry";
inline constexpr char kResultOp[] = "Recursion>Result";
// Fires once in every frame of a body.
inline constexpr char kFrameStartOp[] = "Recursion>FrameStart";
// At call site `call_id`, a Call takes argument `index` into the callee's frame; a Return brings output `index` back.
inline constexpr char kCallOp[] = "Recursion>Call";
inline constexpr char kReturnOp[] = "Recursion>Return";
// Keeps the bodies of a call's SCC from being pruned.
inline constexpr char kKeepAliveOp[] = "Recursion>KeepAlive";

// A call needs these, too, when parts of the callee are on several devices: the AnnounceCall on the device that decides
// whether the call lives tells the JoinCall on every other one.
inline constexpr char kAnnounceCallOp[] = "Recursion>AnnounceCall";
inline constexpr char kJoinCallOp[] = "Recursion>JoinCall";

// Every node of a transformed graph says here which function's body it is part of; it is empty for the main graph.
// Nodes that stock optimizers add get it before the graph is partitioned. What partitioning adds (receives and the
// like) has none.
inline constexpr char kBodyAttr[] = "_recursion_body";
// In a graph that is about to be partitioned, this marks the nodes that begin, end and repeat a loop of which some
// variables may be dead while others live.
inline constexpr char kPartialLoopAttr[] = "_recursion_partial_loop";

// A partition graph becomes one operator of this type, whose kernel runs the executor over it.
inline constexpr char kRunOp[] = "Recursion>Run";
// A Run has the following attributes, besides those of its schema, if they apply to it.
//
// Its graph is a function's own and holds calls that are to be made static (HoldsCallsToMakeStatic).
inline constexpr char kHoldsCallsAttr[] = "_recursion_holds_calls";
// Its graph is a function's, or a part of one.
inline constexpr char kIsOfFunctionAttr[] = "_recursion_is_of_function";
// The functions that its graph names: TensorFlow gives a part of a function only those that its nodes name.
inline constexpr char kFunctionsAttr[] = "_recursion_functions";

// These two are attributes of TensorFlow's. They list which inputs and outputs of a node are in the host's memory,
// besides those of which its kernel says so.
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

// Nodes that we add are named like this; in a body, the prefix of its nodes comes before. A name that is taken gets a
// number behind it, and a name that ends in a slash or an underscore gets what it is for.
//
// The Entry of a function without arguments, the Result that waits for a frame's side effects, and the FrameStart.
inline constexpr char kStartNodeName[] = "recursion_start";
inline constexpr char kDoneNodeName[] = "recursion_done";
inline constexpr char kFrameStartNodeName[] = "recursion_frame_start";
inline constexpr char kKeepAliveNodePrefix[] = "recursion_keep_alive/";
// What stands for a resource while calls are placed (kHandleAttr), or hands one on.
inline constexpr char kHandleNodeName[] = "recursion_handle";
// What fills a graph up to the size from which on Grappler looks at it.
inline constexpr char kPaddingNodeName[] = "recursion_padding";
inline constexpr char kRunNodePrefix[] = "recursion/run_";
// The boundary of the main graph that a call gets that is made static by itself.
inline constexpr char kBoundaryNodePrefix[] = "recursion";
// Nodes beside another node, whose name comes first: one that waits for the effects of a loop or a body, a constant
// that says that the node has run, and the Merge of that constant which others wait for; one that lives if a call does.
inline constexpr char kEffectsSuffix[] = "/effects";
inline constexpr char kHasRunSuffix[] = "/done";
inline constexpr char kKeptWaitSuffix[] = "/kept";
inline constexpr char kLivesSuffix[] = "/lives";

// Call and Return `index` of a call are named "<call>/call_<index>" and "<call>/return_<index>".
inline constexpr char kCallNodeSuffix[] = "/call_";
inline constexpr char kReturnNodeSuffix[] = "/return_";

// The name of the call that a Call, Return, AnnounceCall or JoinCall of this name belongs to.
inline std::string CallOfNode(const std::string& node) { return node.substr(0, node.rfind('/')); }

// Names of ours that are no nodes': of the function that a static call becomes, of the graph in the logs of Grappler,
// of the resource container of snapshots, and of threads.
inline constexpr char kCallFunctionPrefix[] = "recursion_call_";
inline constexpr char kStaticGraphName[] = "recursion_graph";
inline constexpr char kSnapshotContainer[] = "recursion_snapshots";
inline constexpr char kStackThreadName[] = "recursion_stack";

// A function that is named like an operator carries this behind its name in the graph.
inline constexpr char kMangledSuffix[] = "__fn";

// To be differentiated, F becomes F__forward1, which returns a record besides what F returns, and F__backward1, which
// takes the record. F__gradient is the gradient as a function that can be differentiated in turn.
inline constexpr char kForwardSuffix[] = "__forward";
inline constexpr char kBackwardSuffix[] = "__backward";
inline constexpr char kGradientSuffix[] = "__gradient";

// In libraries where several traces of F may meet, one of them is called F__trace1. Every trace of a process has its
// own number.
inline constexpr char kTraceSuffix[] = "__trace";

// F__copy1 is a further body of F, for calls that pass resources of other devices.
inline constexpr char kCopySuffix[] = "__copy";

// The name the user gave the function, for messages: "F" for F__copy1, "gradient of F" for F__backward1.
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
