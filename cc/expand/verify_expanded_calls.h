// Reports what is wrong with the transformed calls that a graph already holds.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_VERIFY_EXPANDED_CALLS_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_VERIFY_EXPANDED_CALLS_H_

#include "absl/status/status.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace tensorflow_recursion {

// InvalidArgument unless the Entry, Result, FrameStart, Call and Return nodes of `graph` fit together: no argument or
// output is there twice, every Call has its Entry and every Return its Result, of the same type, and the nodes of each
// call site name one function.
absl::Status VerifyExpandedCalls(const tensorflow::GraphDef& graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_VERIFY_EXPANDED_CALLS_H_
