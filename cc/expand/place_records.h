// Places what a body retains for its gradient, and the operators that such values pass through.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_PLACE_RECORDS_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_PLACE_RECORDS_H_

#include <string>

#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Records, and gradients that are summed over frames, are memory of one process. So the operators that make them, read
// them or hand them on are assigned to `record_device`, whatever device the user's scope asked for. For example, a
// branch that is pinned elsewhere hands its callee's record on, and must not carry it there and back. Lists of tensors
// go there, too, except for operators of theirs that are pinned. If that device lacks a kernel for one operator of a
// list, the list as a whole goes to the host beside it: a GPU has kernels that make a list and none that take it apart.
//
// Only bodies with records are changed. To be called before the body's other operators are placed.
void PlaceRecords(const std::string& record_device, tensorflow::Graph* body);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_PLACE_RECORDS_H_
