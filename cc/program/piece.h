// Arithmetic on numbers that is one operator of a frame: what the executor has to know of it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_PIECE_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_PIECE_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "cc/base/ids.h"
#include "cc/values/scalar_ops.h"
#include "cc/values/value.h"

namespace tensorflow_recursion {

// One of the operators that a piece is made of, for when they run one by one: in a traced run, and when one of them has
// to ask its kernel.
struct PieceMember {
  struct Operand {
    Value constant = Value::Empty();  // else empty
    uint32_t input = kNone;           // of the piece
    uint32_t member = kNone;          // one before this
  };
  ScalarFunction scalar = nullptr;
  uint32_t kernel = 0;         // in Program::kernels
  bool reads_element = false;  // as Op::reads_element
  std::vector<Operand> operands;
};

// Immutable but for the flag.
struct Piece {
  std::string name;
  int function = 0;            // in Program::piece_code
  std::vector<bool> is_array;  // by input: a tensor of which elements are read; else it is a number
  std::vector<PieceMember> members;
  std::vector<uint32_t> outputs;  // members, by port
  // Set by a run that finds a tensor where the code takes a number, or the other way round: the members run one by one
  // from then on. Relaxed: whoever sees it late finds the same out.
  mutable std::atomic<bool> is_unfit{false};
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_PIECE_H_
