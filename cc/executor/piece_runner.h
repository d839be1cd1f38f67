// Fires a piece: arithmetic on numbers that is one operator.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_PIECE_RUNNER_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_PIECE_RUNNER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "cc/bytecode/code.h"
#include "cc/bytecode/interpreter.h"
#include "cc/executor/frame.h"
#include "cc/executor/token_router.h"
#include "cc/executor/worker_context.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// Runs a piece's code, at once and to its end: it neither branches nor calls. In three cases the members run one by one
// instead, from the beginning, as none of them has effects: when the code meets what it can't do, such as a division by
// zero, which is left to the member's kernel; in a traced run; and where the piece gets a tensor for a number.
//
// Not thread-safe: it is the worker's own.
class PieceRunner {
 public:
  PieceRunner(WorkerContext* context, TokenRouter* router);
  ~PieceRunner() { Clear(); }
  PieceRunner(const PieceRunner&) = delete;
  PieceRunner& operator=(const PieceRunner&) = delete;

  // Takes the inputs over; numbers among them stay where they are.
  void Fire(Frame* frame, const Op& op, Value* inputs);

 private:
  bool RunCode(const Piece& piece, Value* inputs);
  bool RunMembers(const Frame* frame, const Piece& piece, const Value* inputs);
  bool RunMember(const Frame* frame, const Piece& piece, const PieceMember& member, const Value* inputs);
  bool RunKernel(const Frame* frame, const PieceMember& member, Value* result);
  void Clear();

  WorkerContext* const context_;
  TokenRouter* const router_;
  // There is one if the program has pieces.
  std::optional<Interpreter> interpreter_;
  // What the code begins with: its registers, and the tensors whose elements it reads.
  std::vector<Array> arrays_;
  std::vector<uint64_t> registers_;
  // Where members run one by one: the operands of the one that runs, and the results of those that have run.
  std::vector<Value> operands_;
  std::vector<Value> results_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_PIECE_RUNNER_H_
