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

// Runs a piece's code, at once and to its end: it neither branches nor calls. What the code can't do, as a division by
// zero, is left to the kernels of the members: then, in a traced run, and where the piece gets a tensor for a number,
// the members run one by one, from the beginning. None of them has effects.
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
  std::optional<Interpreter> interpreter_;  // if there are pieces
  std::vector<Array> arrays_;               // that the code reads elements of
  std::vector<uint64_t> registers_;         // what the code begins with
  std::vector<Value> operands_;             // of the member that runs
  std::vector<Value> results_;              // of the members that have run
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_PIECE_RUNNER_H_
