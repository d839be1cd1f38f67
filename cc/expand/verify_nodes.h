// Reports what is wrong with the nodes of a graph before it is transformed. All failures are InvalidArgument.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_VERIFY_NODES_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_VERIFY_NODES_H_

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// The node's definition with as many inputs as the node has. The inputs that the definition itself lists may be out of
// date.
tensorflow::NodeDef DefinitionWithEdges(const tensorflow::Node& node);

// Checks that each node suits its operator: attributes, number of inputs, list lengths that fit into memory. TensorFlow
// builds a Graph from a GraphDef without these checks, and some nodes that do not suit crash it. Nodes of functions are
// checked only for the lengths, as their instantiation checks the rest.
absl::Status VerifyNodes(const tensorflow::GraphDef& graph);

// Checks that each node suits its operator, that each of its inputs has an edge, and that each Exit leaves a loop.
absl::Status VerifyGraph(const tensorflow::Graph& graph);

// Checks that the loops of a graph fit together, and that each Exit leaves one. Others would crash Grappler.
absl::Status VerifyLoops(const tensorflow::Graph& graph);

// Checks only that each Exit ends a loop: one that does not would crash TensorFlow's optimizers. Other faults of loops
// are left to TensorFlow, as they may be in a part of the graph that is not fetched.
absl::Status VerifyExits(const tensorflow::Graph& graph);

// Checks all functions of a library: their nodes have all attributes, of the right kind, constants have the dtype that
// they state, and lists are not too long. What is marked for TensorFlow's lowering pass, in `graph` too, must have
// functions that fit and do not expand without end: others would crash the pass and Grappler, or keep them from ending.
absl::Status VerifyFunctions(const tensorflow::Graph& graph, const tensorflow::FunctionLibraryDefinition& library);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_VERIFY_NODES_H_
