// Decides which function a call runs: the plain one, or the one that keeps what its gradient needs.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_RESOLVE_CALLS_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_RESOLVE_CALLS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Makes the calls of a graph say what they run. The graph must hold only what is fetched. A call whose record is read
// becomes a call of the function in its attribute `forward`, whose last output is the record, and gets `suffix` behind
// its name. Inputs that a call does not pass on are dropped. All else stays as it is.
absl::Status ResolveCalls(absl::string_view suffix, tensorflow::Graph* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_RESOLVE_CALLS_H_
