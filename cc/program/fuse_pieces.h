// Makes one operator of a frame of many that compute with numbers.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_FUSE_PIECES_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_FUSE_PIECES_H_

#include <set>

#include "cc/analysis/flow_graph.h"
#include "cc/bytecode/element_reads.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// Replaces the members of each piece (see cc/bytecode/pieces.h) by a node of kind kPiece, in all bodies but the
// `compiled` ones, and tells the program what they are. `reads` is what MakeElementOperators() has found.
void FusePieces(const ElementReads& reads, const std::set<RegionId>& compiled, FlowGraph* flow, Program* program);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_FUSE_PIECES_H_
