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

// Functions that are called dynamically, by the names that users know. A call that its own kernel makes static does not
// count.
using DynamicCalls = std::set<std::string>;

// Finds the functions that nodes of `graph` call, or nodes of the functions that these run.
DynamicCalls FindDynamicCalls(const tensorflow::Graph& graph, const tensorflow::FunctionLibraryDefinition& library);

// Some nodes of `graph` run functions by themselves, as a map over a data set does. Marks the calls in these functions
// to be made static by their own kernels, with the session's options: `library` gets new definitions of the functions.
absl::Status LeaveNestedCallsToKernels(const tensorflow::Graph& graph,
                                       const tensorflow::RewriterConfig_CustomGraphOptimizer& entry,
                                       tensorflow::FunctionLibraryDefinition* library);

// Tells the user of a session with the switch on that calls are dynamic nevertheless. `on_fallback` says whether by one
// notice for each function, once a session, or by FailedPrecondition with the same text. `failure` is the error that
// the transformation ended with. `devices` are those of the session, among whose resources it is noted what has been
// said; if they are nullptr, notices are not limited to one a session.
absl::Status TellOfFallback(const DynamicCalls& calls, const absl::Status& failure, OnFallback on_fallback,
                            const tensorflow::DeviceSet* devices);

// The text of a notice about a function. `is_of_session` says that the call is in a session's graph, or was marked
// there to be made static by its kernel; what turns notices into errors is then an option of the session.
std::string FallbackText(const std::string& function, const absl::Status& failure, bool is_of_session);

// The text of a notice about a graph, with calls of `function` in it, that cannot be made one program although each of
// its calls can.
std::string OneByOneText(const std::string& function, const absl::Status& failure, bool is_of_session);

// Tells the user of a session without the switch that there is one, by one notice a session.
void TellOfNoSwitch(const DynamicCalls& calls, const tensorflow::DeviceSet* devices);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_DYNAMIC_CALLS_H_
