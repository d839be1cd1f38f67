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

// A piece is arithmetic on numbers and reads of single elements, with nothing else between them. For example, the two
// indices and the three reads in
//
//     tf.matmul(x, table) * weights[2 * i + 1] + weights[2 * i + 2] * scale[i]
//
// are one. All of it has one origin (see origins.h), so it fires at once or not at all, and what it makes comes as
// early as if each operator ran by itself. It has no effects and, unlike a compiled function, neither branches nor
// calls.
struct PieceOfBody {
  // Each member comes after those whose values it reads.
  std::vector<NodeId> members;
  // The values that members read of other nodes, each once, and whether it is a tensor whose elements are read. If not,
  // it is a number.
  std::vector<Source> inputs;
  std::vector<bool> is_array;
  // The values of members that other nodes read.
  std::vector<Source> outputs;
  // Which function of PiecesOfBodies::code computes the piece.
  int function = 0;
};

// What FindPieces makes: all pieces of a program, and their code.
struct PiecesOfBodies {
  std::vector<PieceOfBody> pieces;
  // nullptr if there are no pieces.
  std::unique_ptr<const Code> code;
};

// Looks at all functions and loops except for `compiled` functions. There are no pieces in the main graph itself, which
// runs only once. `flow` is as MakeElementOperators() leaves it, and `reads` is what FindElementReads() said before.
PiecesOfBodies FindPieces(const FlowGraph& flow, const ElementReads& reads, const std::set<RegionId>& compiled);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_PIECES_H_
