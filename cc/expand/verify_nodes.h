// Says what is wrong with the nodes of a graph before it is transformed. All failures are InvalidArgument.
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

// The node's definition, with an input for each that the node has: what its edges say counts, and not the inputs that
// the definition remembers.
tensorflow::NodeDef DefinitionWithEdges(const tensorflow::Node& node);

// Each node suits its operator: attributes, number of inputs, list lengths that fit into memory. TensorFlow builds a
// Graph from a GraphDef without asking, and dies of some that do not. Nodes of functions are checked for the lengths
// only, as their instantiation checks the rest.
absl::Status VerifyNodes(const tensorflow::GraphDef& graph);

// Each node suits its operator, each of its inputs has an edge, and each Exit leaves a loop.
absl::Status VerifyGraph(const tensorflow::Graph& graph);

// The loops of a graph fit together, and each Exit leaves one. Grappler does not survive others.
absl::Status VerifyLoops(const tensorflow::Graph& graph);

// Whether each Exit ends a loop; TensorFlow's optimizers die of one that does not. What else may be wrong with loops is
// left to TensorFlow, as it may be in a part of the graph that nobody fetches.
absl::Status VerifyExits(const tensorflow::Graph& graph);

// All functions of a library: their nodes' attributes are there and of the right kind, constants are of the
// dtype that they state, lists are not too long, and what
// is marked for TensorFlow's lowering pass, in `graph` too, has functions that fit and that end. The pass itself, and
// Grappler, die of others or never return.
absl::Status VerifyFunctions(const tensorflow::Graph& graph, const tensorflow::FunctionLibraryDefinition& library);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_VERIFY_NODES_H_
