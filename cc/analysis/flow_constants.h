// Reads constants out of the graph, and hands them to their readers as values or as tokens.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_CONSTANTS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_CONSTANTS_H_

#include "absl/status/status.h"
#include "cc/analysis/flow_builder.h"

namespace tensorflow_recursion {

// Finds the constant that a node holds, see HoldsConstant. InvalidArgument if it is not a valid tensor.
absl::Status ConstantOf(FlowBuilder* builder, const tensorflow::Node* node, ConstantId* constant);

// Finds or makes the flow node that sends the constant as a token, for nodes that take nothing but tokens (merges and
// results, for example).
absl::Status ConstantToken(FlowBuilder* builder, const tensorflow::Node* node, NodeId* token);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_CONSTANTS_H_
