// Finds the calls of a step that will run dynamically, and tells the user why and what to do.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_DYNAMIC_CALLS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_DYNAMIC_CALLS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "cc/base/options.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"

namespace tensorflow_recursion {

// Calls that are static by themselves are none. By the user's name of what is called: the node of the graph in whose
// functions the call is, "name (operator)", or nothing if the call is a node of the graph itself. A function that is
// called in both ways is of the graph itself.
using DynamicCalls = std::map<std::string, std::string>;

// The calls that `graph` holds, and those that functions hold which its nodes run.
DynamicCalls FindDynamicCalls(const tensorflow::Graph& graph, const tensorflow::FunctionLibraryDefinition& library);

// Lets the calls in functions that nodes of `graph` run by themselves be made static by their own kernels, with the
// session's options: `library` gets other definitions of these functions.
absl::Status LeaveNestedCallsToKernels(const tensorflow::Graph& graph,
                                       const tensorflow::RewriterConfig_CustomGraphOptimizer& entry,
                                       tensorflow::FunctionLibraryDefinition* library);

// In a session with the switch on: a notice for each function, once a session, or FailedPrecondition that says the
// same. `failure` is what the transformation failed of. The session is known by its devices, which may be null.
absl::Status TellOfFallback(const DynamicCalls& calls, const absl::Status& failure, OnFallback on_fallback,
                            const tensorflow::DeviceSet* devices);

// What to say of a function that the kernel of a call cannot make static. `is_of_session`: a session with the switch on
// has left the call to its kernel.
std::string KernelFallbackText(const std::string& function, const absl::Status& failure, bool is_of_session);

// In a session with the switch off: one notice a session.
void TellOfNoSwitch(const tensorflow::ConfigProto& config, const DynamicCalls& calls,
                    const tensorflow::DeviceSet* devices);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_DYNAMIC_CALLS_H_
