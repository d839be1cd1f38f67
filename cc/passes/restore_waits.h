// Lets nodes that wait for all side effects of a body wait for each of them directly.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_RESTORE_WAITS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_RESTORE_WAITS_H_

#include "cc/analysis/regions.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Gives every ControlTrigger of `graph` a control edge from each side effect, call and loop from which a path leads to
// it.
//
// Grappler takes out a control edge if a path through other nodes orders the same, as in
//
//     assign -> switch -> print -> done        assign -> done
//
// In TensorFlow's executor the path orders the same even if the branch is not taken: `print` is dead then, but it is
// told so by `switch`, which has waited for `assign`. In our executor the news that a value is dead does not wait for
// anything: `done` gets it as soon as the predicate is known, perhaps before `assign` has run. And a path through a
// call does not mean that all arguments of the call have come. So the direct edges are needed.
void RestoreWaits(const GraphRegions& regions, tensorflow::Graph* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_RESTORE_WAITS_H_
