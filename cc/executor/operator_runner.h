// Fires an operator that has all its inputs.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_OPERATOR_RUNNER_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_OPERATOR_RUNNER_H_

#include "cc/base/ids.h"
#include "cc/executor/control_flow.h"
#include "cc/executor/frame.h"
#include "cc/executor/kernel_launcher.h"
#include "cc/executor/loop_runner.h"
#include "cc/executor/operator_inputs.h"
#include "cc/executor/piece_runner.h"
#include "cc/executor/ready_queue.h"
#include "cc/executor/token_router.h"
#include "cc/executor/worker_context.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// Does what the operator's kind says. It does by itself what is little work, above all arithmetic on single numbers.
// Kernels, pieces, loops and control flow have runners of their own, which it calls.
//
// Not thread-safe: it is the worker's own.
class OperatorRunner {
 public:
  OperatorRunner(WorkerContext* context, ReadyQueue* queue, OperatorInputs* inputs, TokenRouter* router,
                 KernelLauncher* kernels, PieceRunner* pieces, LoopRunner* loops, ControlFlow* control_flow);

  // `item` lies in the queue's memory and is valid until the first push. The caller gives back its count in the frame's
  // `live`.
  void Fire(ReadyOperator* item);

 private:
  void FireScalar(Frame* frame, OpId index, const Op& op, Value* inputs);
  void FireSlice(Frame* frame, OpId index, const Op& op, Value* inputs);
  void FirePass(Frame* frame, const Op& op, Value* inputs);
  void FireRetval(const Op& op, Value* inputs);
  void FireRetain(Frame* frame, const Op& op, Value* inputs);
  void FireRecall(Frame* frame, const Op& op, Value* inputs);

  WorkerContext* const context_;
  ReadyQueue* const queue_;
  OperatorInputs* const inputs_;
  TokenRouter* const router_;
  KernelLauncher* const kernels_;
  PieceRunner* const pieces_;
  LoopRunner* const loops_;
  ControlFlow* const control_flow_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_OPERATOR_RUNNER_H_
