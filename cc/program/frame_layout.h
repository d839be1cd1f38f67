// Lays out the frames of each region: who keeps its inputs in which slots, and what a new frame holds.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_FRAME_LAYOUT_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_FRAME_LAYOUT_H_

#include "cc/program/layout.h"

namespace tensorflow_recursion {

// Fills in all that has to do with slots, and the regions' frame templates. To be called when edges and gates are in
// place.
void PlaceFrames(Layout* layout);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_FRAME_LAYOUT_H_
