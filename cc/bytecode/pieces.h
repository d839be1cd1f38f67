// Finds the arithmetic in a body with tensors that can be one operator, and compiles it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_PIECES_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_PIECES_H_

#include <memory>
#include <set>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "cc/bytecode/code.h"
#include "cc/bytecode/element_reads.h"

namespace tensorflow_recursion {

// Arithmetic on numbers and reads of single elements that nothing else comes between. For example, the two indices and
// the three reads in
//
//     tf.matmul(x, table) * weights[2 * i + 1] + weights[2 * i + 2] * scale[i]
//
// All of it has one origin (see origins.h), so it fires at once or not at all, and what it makes is there as early as
// if each operator ran by itself. It has no effects and, unlike a compiled function, neither branches nor calls.
struct PieceOfBody {
  std::vector<NodeId> members;  // each behind its sources
  std::vector<Source> inputs;   // what they read of others, each once
  std::vector<bool> is_array;   // by input: elements are read of it; else it is a number
  std::vector<Source> outputs;  // what others read of them
  int function = 0;             // in PiecesOfBodies::code
};

struct PiecesOfBodies {
  std::vector<PieceOfBody> pieces;
  std::unique_ptr<const Code> code;  // nullptr if there are no pieces
};

// Looks at all functions and loops but those of `compiled` functions. The main graph itself runs once, so nothing is
// gained there. `flow` is as MakeElementOperators() leaves it, and `reads` is what FindElementReads() said before.
PiecesOfBodies FindPieces(const FlowGraph& flow, const ElementReads& reads, const std::set<RegionId>& compiled);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_PIECES_H_
