// Says what is wrong with a graph before it is transformed. All failures are InvalidArgument.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_VERIFY_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_VERIFY_H_

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Each node suits its operator: attributes, number of inputs, list lengths that fit into memory. TensorFlow builds a
// Graph from a GraphDef without asking, and dies of some that do not. Nodes of functions are checked for the lengths
// only, as their instantiation checks the rest.
absl::Status VerifyNodes(const tensorflow::GraphDef& graph);

// Each node suits its operator, and each of its inputs has an edge.
absl::Status VerifyGraph(const tensorflow::Graph& graph);

// All functions of a library: their nodes' attributes are there and of the right kind, lists are not too long, and what
// is marked for TensorFlow's lowering pass, in `graph` too, has functions that fit and that end. The pass itself, and
// Grappler, die of others or never return.
absl::Status VerifyFunctions(const tensorflow::Graph& graph, const tensorflow::FunctionLibraryDefinition& library);

// The function a call names exists, and takes and returns what the call gives and expects.
absl::Status VerifyCallSite(const tensorflow::NodeDef& invoke, const tensorflow::FunctionLibraryDefinition& library);
absl::Status VerifyCallSite(const tensorflow::Node& invoke, const tensorflow::FunctionLibraryDefinition& library);

// Entry, Result, FrameStart, Call and Return nodes that `graph` already holds fit together: no argument or output
// twice, every Call has its Entry and every Return its Result, of the same type; sites name one function each.
absl::Status VerifyExpandedCalls(const tensorflow::GraphDef& graph);

// InvalidArgument if a node of a function that `graph` may call asks for a device that is not in `devices`. With soft
// placement only the process must exist. Grappler would log the Placer's error and go on without the transformation.
absl::Status VerifyDevices(const tensorflow::Graph& graph, const tensorflow::FunctionLibraryDefinition& library,
                           const tensorflow::DeviceSet& devices, bool allow_soft_placement);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_VERIFY_H_
