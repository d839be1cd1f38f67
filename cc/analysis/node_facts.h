// Questions about one node of a TensorFlow graph.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_NODE_FACTS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_NODE_FACTS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

inline bool Is(const tensorflow::Node* node, const char* op) { return node->type_string() == op; }

bool IsSwitchN(const tensorflow::Node* node);

// Whether the node is where a function's body begins, in every frame.
bool IsBodySource(const tensorflow::Node* node);

// Whether the node is part of a call site, which has one flow node for all its parts.
bool IsCallSitePart(const tensorflow::Node* node);

// Whether the node's value is known when the program is built. A FakeParam counts: it stands for a value that nobody
// reads, where the branch that would have made it was not taken.
bool HoldsConstant(const tensorflow::Node* node);

// Whether the Enter brings a value from outside of its loop to all iterations.
bool IsLoopConstant(const tensorflow::Node& enter);

// Whether the node is marked as part of a loop of which some variables may be dead while others live.
bool IsOfPartialLoop(const tensorflow::Node* node);

// Whether an input of the node is a TF1 reference.
bool ReadsReference(const tensorflow::Node* node);
// Whether any node of the graph reads a TF1 reference.
bool AnyReadsReference(const tensorflow::Graph& graph);

// The data edge into `input`; nullptr if there is none. Takes time in proportion to all edges into the node.
const tensorflow::Edge* InputEdge(const tensorflow::Node* node, int input);
// The same for all inputs, in time linear in them.
std::vector<const tensorflow::Edge*> InputEdges(const tensorflow::Node* node);

absl::Status ReadInteger(const tensorflow::Node* node, const char* attr, int64_t* value);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_NODE_FACTS_H_
