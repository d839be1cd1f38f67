// Turns sources into edges: each port gets the list of those who read it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_EDGE_LAYOUT_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_EDGE_LAYOUT_H_

#include "absl/status/status.h"
#include "cc/program/layout.h"

namespace tensorflow_recursion {

// When the operators have been numbered: fills in the regions' edges and ports, and what operators wait for. The slots
// of the edges come with PlaceFrames. InvalidArgument if a node reads what its source does not have.
absl::Status PlaceEdges(Layout* layout);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_EDGE_LAYOUT_H_
