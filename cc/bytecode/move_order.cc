// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/move_order.h"

#include <algorithm>

namespace tensorflow_recursion {
namespace {

using RegisterMoves = std::vector<RegisterMove>;

// Finds a move that overwrites a register which no other one reads: the move to `preferred` if that is possible.
// Returns the end if there is none.
RegisterMoves::iterator FindFreeMove(RegisterMoves* moves, int preferred) {
  auto found = moves->end();
  for (auto move = moves->begin(); move != moves->end(); ++move) {
    const bool is_read =
        std::any_of(moves->begin(), moves->end(), [&](const RegisterMove& other) { return other.from == move->to; });
    if (is_read) continue;
    if (move->to == preferred) return move;
    if (found == moves->end()) found = move;
  }
  return found;
}

}  // namespace

std::vector<RegisterMove> OrderMoves(std::vector<RegisterMove> moves, int spare) {
  const auto is_done = [](const RegisterMove& move) { return move.to == move.from; };
  moves.erase(std::remove_if(moves.begin(), moves.end(), is_done), moves.end());
  RegisterMoves order;
  while (!moves.empty()) {
    const auto free = FindFreeMove(&moves, order.empty() ? -1 : order.back().to + 1);
    if (free != moves.end()) {
      order.push_back(*free);
      moves.erase(free);
      continue;
    }
    const int kept = moves.front().to;
    order.push_back({spare, kept});
    for (RegisterMove& move : moves) {
      if (move.from == kept) move.from = spare;
    }
  }
  return order;
}

}  // namespace tensorflow_recursion
