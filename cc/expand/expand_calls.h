// Transforms a graph: every call of a recursive function becomes Call and Return operators around one body.
// It is a function from GraphDef to GraphDef, without session, device or state. docs/design/graph.md shows its result.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_EXPAND_CALLS_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_EXPAND_CALLS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cc/base/options.h"
#include "cc/expand/body_factory.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace tensorflow_recursion {

// What ExpandCalls has to know besides the graph.
struct ExpandOptions {
  // What is fetched of the main graph: tensors ("n:0"), or nodes as a whole, with all outputs and side effects ("n").
  // What none of them needs is left out of the result. If there are none, every node counts.
  std::vector<std::string> fetches;
  std::vector<std::string> feeds;
  Options run;
  Placement placement;
  // The feeds and fetches of the main graph are `_Arg` and `_Retval` nodes of it already.
  bool is_cut = false;
};

// Whether ExpandCalls would change `graph`, because it is a main graph with a call in it. A graph with `_Arg` or
// `_Retval` nodes is taken for a function's body, unless it is said to be a main graph that has been cut.
bool HasExpandableCalls(const tensorflow::GraphDef& graph, bool is_cut = false);

// Transforms `graph` into `*expanded`. Deterministic. Any fault of the graph, its functions or its calls is
// InvalidArgument; `*expanded` is then unspecified. Without calls the result is a copy.
absl::Status ExpandCalls(const tensorflow::GraphDef& graph, const ExpandOptions& options,
                         tensorflow::GraphDef* expanded);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_EXPAND_CALLS_H_
