// Finds the calls of a step that will run dynamically, and tells the user why and what to do.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_DYNAMIC_CALLS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_DYNAMIC_CALLS_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "cc/base/options.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"

namespace tensorflow_recursion {

// The functions that are called dynamically, by the names that users know. A call that its own kernel makes static does
// not count.
using DynamicCalls = std::set<std::string>;

// The calls that `graph` holds, and those that functions hold which its nodes run.
DynamicCalls FindDynamicCalls(const tensorflow::Graph& graph, const tensorflow::FunctionLibraryDefinition& library);

// Lets the calls in functions that nodes of `graph` run by themselves be made static by their own kernels, with the
// session's options: `library` gets other definitions of these functions.
absl::Status LeaveNestedCallsToKernels(const tensorflow::Graph& graph,
                                       const tensorflow::RewriterConfig_CustomGraphOptimizer& entry,
                                       tensorflow::FunctionLibraryDefinition* library);

// Tells the user of a session with the switch on that calls are dynamic nevertheless: by a notice for each function,
// once a session, or by FailedPrecondition with the same text, as `on_fallback` says. `failure` is the error that the
// transformation ended with. `devices` are the session's, which tell it from others; they may be null.
absl::Status TellOfFallback(const DynamicCalls& calls, const absl::Status& failure, OnFallback on_fallback,
                            const tensorflow::DeviceSet* devices);

// What a notice says of a function. `is_of_session`: of one in a session with the switch on, which may have left the
// call to its kernel.
std::string FallbackText(const std::string& function, const absl::Status& failure, bool is_of_session);

// Tells the user of a session with the switch off that there is one, by one notice a session.
void TellOfNoSwitch(const tensorflow::ConfigProto& config, const DynamicCalls& calls,
                    const tensorflow::DeviceSet* devices);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_DYNAMIC_CALLS_H_
