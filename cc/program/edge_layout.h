// Turns the sources that nodes read into edges: each port gets the list of those who read it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_EDGE_LAYOUT_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_EDGE_LAYOUT_H_

#include "absl/status/status.h"
#include "cc/program/layout.h"

namespace tensorflow_recursion {

// Fills in the regions' edges and ports, and how much operators wait for. To be called when the operators have been
// numbered. PlaceFrames says later which slots the edges lead to. InvalidArgument if a node reads an output that its
// source does not have.
absl::Status PlaceEdges(Layout* layout);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_EDGE_LAYOUT_H_
