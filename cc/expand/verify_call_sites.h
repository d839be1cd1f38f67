// Says what is wrong with a call of a recursive function before the graph is transformed.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_VERIFY_CALL_SITES_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_VERIFY_CALL_SITES_H_

#include "absl/status/status.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// InvalidArgument unless the function that the call names exists, takes what the call passes, and returns what the call
// expects.
absl::Status VerifyCallSite(const tensorflow::NodeDef& invoke, const tensorflow::FunctionLibraryDefinition& library);
absl::Status VerifyCallSite(const tensorflow::Node& invoke, const tensorflow::FunctionLibraryDefinition& library);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_VERIFY_CALL_SITES_H_
