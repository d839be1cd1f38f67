// Finds out where a node's inputs come from, looking through nodes that only rename a value.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_SOURCES_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_SOURCES_H_

#include <vector>

#include "absl/status/status.h"
#include "cc/analysis/flow_builder.h"

namespace tensorflow_recursion {

// Whether the node's output is its input. The node may wait for control inputs all the same, as a LoopCond does for the
// side effects of its loop's condition, or read a reference. A Snapshot counts only in graphs without TF1 references:
// elsewhere its input may lie in the memory of a variable, so it has to be copied.
bool YieldsItsInput(const FlowBuilder& builder, const tensorflow::Node* node);

// Whether the node only renames its input: it yields that, and has no control inputs.
bool IsAlias(const FlowBuilder& builder, const tensorflow::Node* node);

// Whether the node is a Switch of a predicate on itself, which tells the two sides of a branch from one another. Its
// outputs are those of the kBranch on the predicate.
bool IsPredicateSwitch(const FlowBuilder& builder, const tensorflow::Node* node);

// The functions below may be called when all nodes have been made. Those that return a Status fail with InvalidArgument
// if the node lacks the input, or reads what carries no value.

// Finds where output `port` of `node` comes from; a constant is sent as a token.
absl::Status ResolveOutput(FlowBuilder* builder, const tensorflow::Node* node, int port, Source* source);

// Finds a data input, as a constant if it is one.
absl::Status ResolveInput(FlowBuilder* builder, const tensorflow::Node* node, int input, Input* result);

// Finds a data input that must arrive as a token, even if it is a constant.
absl::Status ResolveToken(FlowBuilder* builder, const tensorflow::Node* node, int input, Input* result);

// Finds all data inputs, in time linear in them.
absl::Status ResolveInputs(FlowBuilder* builder, const tensorflow::Node* node, bool as_tokens,
                           std::vector<Input>* results);

// Finds the one data input of `node` as a token that waits for the node's control inputs, and is dead if any of them
// is.
absl::Status ResolveTokenAndControls(FlowBuilder* builder, const tensorflow::Node* node, Input* result);

// Adds what the node's control inputs wait for, sorted, each once.
absl::Status ResolveControls(FlowBuilder* builder, const tensorflow::Node* node, std::vector<Source>* controls);

// The kBranch on `predicate`, which all switches on it in the region share. `reader` is the node that asks for it: a
// Switch or a LoopCond. Errors name the first one that does.
NodeId BranchOn(FlowBuilder* builder, const Source& predicate, const tensorflow::Node* reader);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_SOURCES_H_
