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

  // A Switch that is no gate. Its inputs are the data and the predicate. Nobody has to learn from it that the other
  // side is dead: the branch on the predicate tells that.
  void FireSwitch(Frame* frame, const Op& op, Value* inputs);

  // A branch. Its input is the predicate that several Switches share, which have become the branch's gates. From now on
  // data that reaches a gate passes it at once. What waits at the gates goes on, and the other side learns that it is
  // dead.
  void FireBranch(Frame* frame, const Op& op, Value* inputs);

  // The switch of a case. Its inputs are the data and the index. An index out of range means the last side, as for
  // TensorFlow's kernel.
  void FireSwitchN(Frame* frame, const Op& op, Value* inputs);

  // A merge, whose first live input lies in its slot.
  void FireMerge(Frame* frame, const Op& op);

 private:
  bool ReadPredicate(Frame* frame, const Op& op, const Value& value, bool* result);
  bool TakePredicate(Frame* frame, const Op& op, Value* value, bool* result);

  WorkerContext* const context_;
  TokenRouter* const router_;
  // The gates of the branch that fires at which data has waited, with that data.
  std::vector<std::pair<OpId, Value>> released_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_CONTROL_FLOW_H_
