// Lets what waits for all side effects of a body wait for each of them itself.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PASSES_RESTORE_WAITS_H_
#define TENSORFLOW_RECURSION_CC_PASSES_RESTORE_WAITS_H_

#include "cc/analysis/regions.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Gives every ControlTrigger of `graph` a control edge from each side effect, call and loop that a path leads from.
//
// Grappler takes a control edge out where a path of other nodes orders the same, as in
//
//     assign -> switch -> print -> done        assign -> done
//
// In TensorFlow it does even if the branch is not taken: `print` is dead then, but learns of it from `switch`, which
// has waited for `assign`. Here nobody waits to tell of a death: `done` hears of it as soon as the predicate is known.
// Nor does a path that leads through a call say that all arguments have come. So the direct edges count.
void RestoreWaits(const GraphRegions& regions, tensorflow::Graph* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PASSES_RESTORE_WAITS_H_
