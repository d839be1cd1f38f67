// Says what the executor has to know of a piece: arithmetic on numbers that is one operator of a frame.
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

// One of the operators that a piece is made of. They run one by one in a traced run, and when one of them needs its
// kernel.
struct PieceMember {
  // An operand is a constant, an input of the piece, or the result of a member before this one. Two of the three are
  // empty or kNone.
  struct Operand {
    Value constant = Value::Empty();
    uint32_t input = kNone;
    uint32_t member = kNone;
  };
  ScalarFunction scalar = nullptr;
  // Its place in Program::kernels.
  uint32_t kernel = 0;
  // Its kernel takes what PackIndices() makes of its operands.
  bool reads_element = false;
  std::vector<Operand> operands;
};

// Immutable but for the flag.
struct Piece {
  std::string name;
  // Which function of Program::piece_code computes it.
  int function = 0;
  // Which inputs are tensors whose elements are read. The others are numbers.
  std::vector<bool> is_array;
  std::vector<PieceMember> members;
  // The members whose results go to the operator's ports.
  std::vector<uint32_t> outputs;
  // A run sets this when it finds a tensor where the code takes a number, or the other way round. From then on the
  // members run one by one. Relaxed, because a run that sees the flag too late finds out the same.
  mutable std::atomic<bool> is_unfit{false};
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_PIECE_H_
