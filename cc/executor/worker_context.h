// What every part of a worker knows: the run, and how much may still be done before the worker looks up.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_CONTEXT_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_CONTEXT_H_

#include <memory>

#include "absl/base/optimization.h"
#include "absl/status/status.h"
#include "cc/executor/run_state.h"
#include "cc/executor/worker_profile.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// How much work a worker does between two looks at cancellation, errors, memory, messages and idle workers, at most. A
// call counts as one, and so does an iteration of a loop.
inline constexpr int kPollInterval = 512;

// One for each worker; only the worker's thread uses it.
struct WorkerContext {
  WorkerContext(RunState* run, int index)
      : run(run), program(*run->environment.program), index(index), traces(run->environment.trace) {
    if (ABSL_PREDICT_FALSE(run->environment.profiles)) profile = std::make_unique<WorkerProfile>(program);
  }

  void Spend(int work) { budget -= work; }
  bool must_poll() const { return budget <= 0; }
  void PollSoon() { budget = 0; }

  // Ends the run with an error in `frame`, and lets the worker see it at its next step.
  // The error is below that in compiled code, which `compiled` runs, if it is given.
  void FailAt(const absl::Status& status, const Frame* frame, const Interpreter* compiled = nullptr) {
    PollSoon();
    run->FailAt(status, frame, compiled);
  }

  RunState* const run;
  const Program& program;
  const int index;    // of the worker
  const bool traces;  // every kernel is to show: the executor computes nothing by itself, and logs frames
  int budget = kPollInterval;
  bool restarts_slice = false;             // the thread was held by what would hold it in stock execution, too
  std::unique_ptr<WorkerProfile> profile;  // nullptr unless the run is profiled
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_CONTEXT_H_
