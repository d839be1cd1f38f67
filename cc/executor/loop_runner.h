// Runs loops: opens a frame for each iteration.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_LOOP_RUNNER_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_LOOP_RUNNER_H_

#include <cstdint>

#include "cc/executor/frame.h"
#include "cc/executor/frame_store.h"
#include "cc/executor/token_router.h"
#include "cc/executor/worker_context.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// Two operators collect the variables of a loop. Its start, in the region around the loop, waits for the values that
// enter, and opens the first iteration. Its next, in the body, waits for the values of the next iteration, and opens
// that. The parent of every iteration is the frame around the loop.
//
// In most loops all variables live or none. A *partial* loop may start with some of its variables dead (their Enters
// were in a branch that was not taken), and runs with those that live. Its start and its next fire with dead inputs,
// too.
//
// Not thread-safe: it is the worker's own.
class LoopRunner {
 public:
  LoopRunner(WorkerContext* context, FrameStore* frames, TokenRouter* router)
      : context_(context), frames_(frames), router_(router) {}

  // These fire the loop's start and its next, whose inputs lie in their slots.
  void FireStart(Frame* frame, const Op& op);
  void FireNext(Frame* frame, const Op& op);

 private:
  bool IsDead(Frame* frame, const Loop& loop, const Op& op);
  Frame* NewIteration(const Loop& loop, Frame* parent, uint32_t iteration);
  bool EndsHere(Frame* frame, const Loop& loop, const Op& op);
  void Start(Frame* iteration);

  WorkerContext* const context_;
  FrameStore* const frames_;
  TokenRouter* const router_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_LOOP_RUNNER_H_
