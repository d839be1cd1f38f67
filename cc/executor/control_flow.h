// Fires the operators that decide which way values go.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_CONTROL_FLOW_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_CONTROL_FLOW_H_

#include <utility>
#include <vector>

#include "cc/base/ids.h"
#include "cc/executor/frame.h"
#include "cc/executor/token_router.h"
#include "cc/executor/worker_context.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// Not thread-safe: it is the worker's own.
class ControlFlow {
 public:
  ControlFlow(WorkerContext* context, TokenRouter* router) : context_(context), router_(router) {}

  // Inputs: data, predicate. A Switch by itself, where nobody has to learn that the other side is dead.
  void FireSwitch(Frame* frame, const Op& op, Value* inputs);

  // Input: the predicate that several Switches share. They have become the branch's gates: data that reaches a gate
  // from now on passes it at once, and what waits at gates now goes on. The dead side is told.
  void FireBranch(Frame* frame, const Op& op, Value* inputs);

  // Inputs: data, the index of a case. An index out of range means the last branch, as for TensorFlow's kernel.
  void FireSwitchN(Frame* frame, const Op& op, Value* inputs);

  // A merge whose first input lies in its slot.
  void FireMerge(Frame* frame, const Op& op);

 private:
  bool ReadPredicate(Frame* frame, const Value& value, bool* result);
  bool TakePredicate(Frame* frame, Value* value, bool* result);

  WorkerContext* const context_;
  TokenRouter* const router_;
  std::vector<std::pair<OpId, Value>> released_;  // gates of the branch that fires, and what waited there
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_CONTROL_FLOW_H_
