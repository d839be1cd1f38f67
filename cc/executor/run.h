// Holds the workers of one run of a program.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_RUN_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_RUN_H_

#include <memory>
#include <mutex>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "cc/executor/idle_workers.h"
#include "cc/executor/run_program.h"
#include "cc/executor/run_state.h"
#include "cc/executor/worker.h"

namespace tensorflow_recursion {

// A run deletes itself when its last activity ends.
class Run {
 public:
  Run(RunEnvironment environment, RunDone done);

  void Start(std::vector<Value> arguments);

  // Returns a worker without work, to which the caller gives a call by a message. Until then nobody else gets it.
  // Returns nullptr if there is none.
  Worker* TakeIdleWorker();

  RunState state;
  IdleWorkers idle_workers;

 private:
  Worker* MakeWorker();
  void Finish();

  RunDone done_;
  // Needed because any worker may make another.
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> workers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_RUN_H_
