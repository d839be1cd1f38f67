// Orders moves between registers that are to happen as if at once.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_MOVE_ORDER_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_MOVE_ORDER_H_

#include <vector>

namespace tensorflow_recursion {

// Register `to` gets what is in register `from`.
struct RegisterMove {
  int to;
  int from;

  bool operator==(const RegisterMove& other) const { return to == other.to && from == other.from; }
};

// Returns moves that do one after the other what `moves` are to do at once. No two of these may have the same `to`.
// Registers that no move reads any more are overwritten first, neighbours after one another where that is possible.
// Then only circles are left, and each is cut by keeping one of its values in register `spare`, which none of the moves
// names. For example, to swap registers 1 and 2, 1 is kept in the spare one, then 1 is overwritten, then 2.
std::vector<RegisterMove> OrderMoves(std::vector<RegisterMove> moves, int spare);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_MOVE_ORDER_H_
