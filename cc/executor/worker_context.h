// Holds what every part of a worker knows: the run, and how much may still be done before the worker looks up.
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

// How many pieces of work a worker does at most before it looks up, at cancellation, errors, memory, messages and idle
// workers. A call counts as one, and so does an iteration of a loop.
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

  // Ends the run with an error in `frame`, or in the compiled code below it that `compiled` runs. The worker sees it at
  // its next step.
  void FailAt(const absl::Status& status, const Frame* frame, const Interpreter* compiled = nullptr) {
    PollSoon();
    run->FailAt(status, frame, compiled);
  }

  RunState* const run;
  const Program& program;
  // Which of the run's workers it is.
  const int index;
  // A trace shall show every operator, so the executor computes nothing by itself, and logs frames.
  const bool traces;
  // How many pieces of work may still be done before the worker looks up.
  int budget = kPollInterval;
  // The worker has run an operator of the main graph that would have held the thread in stock execution, too. So the
  // time until it leaves the thread begins anew.
  bool restarts_slice = false;
  // nullptr unless the run is profiled.
  std::unique_ptr<WorkerProfile> profile;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_CONTEXT_H_
