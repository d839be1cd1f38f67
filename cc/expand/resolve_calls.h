// Which function a call runs: the plain one, or the one that keeps what its gradient needs.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_RESOLVE_CALLS_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_RESOLVE_CALLS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Makes the calls of a graph that holds only what is fetched say what they run: a call whose record is read
// becomes one of its attribute `forward`, whose last output that is, with `suffix` behind its name; and no call
// keeps inputs that are not passed on. The others keep their names and everything else.
absl::Status ResolveCalls(absl::string_view suffix, tensorflow::Graph* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_RESOLVE_CALLS_H_
