// Runs a Program once. This is the entrance to the executor.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_RUN_PROGRAM_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_RUN_PROGRAM_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cc/executor/kernel_runner.h"
#include "cc/executor/memory_watch.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// What a run needs from outside. All of it must stay valid until `done` is called.
struct RunEnvironment {
  const Program* program = nullptr;
  KernelRunner* runner = nullptr;
  // How many workers the run may spread over. The caller's thread is the first.
  int max_workers = 1;
  // How long the first worker goes on by itself before it gives calls to others. A worker that has slept takes some 50
  // us to get going, and meanwhile the first could have done what it gave away.
  absl::Duration alone = absl::ZeroDuration();
  // Operators of the main graph go to other threads, as many as there are, as they do in stock execution.
  bool spreads_main_graph = false;
  // Runs a closure on another thread. It is needed for more than one worker and for asynchronous kernels.
  std::function<void(std::function<void()>)> schedule;
  // Starts a new thread for a closure. A worker that has held a thread of `schedule` for longer than `slice` goes on on
  // such a thread, so that other work of the process gets its turn. If this is empty, the worker stays.
  std::function<void(std::function<void()>)> start_thread;
  absl::Duration slice = absl::Milliseconds(5);
  // Workers call this every time they look up, which is often.
  std::function<bool()> is_cancelled;
  // Is told of the first error as it happens, so that kernels in flight can be aborted.
  std::function<void(const absl::Status&)> on_error;
  // Has arithmetic done by kernels, too, so that a trace shows it.
  bool trace = false;
  // Counts where the time goes.
  bool profiles = false;
  // Is told of each call that the main graph makes.
  std::function<void()> on_main_call;
  // Tells how much memory there is, by which a recursion ends that is about to take all of it.
  MemoryGauge memory;
  // In tests: ready operators come in a random order with this seed instead of the newest first. 0 turns that off.
  uint64_t shuffle_seed = 0;
};

// Takes the arguments over, and calls `done` once, when everything that the run has started has ended: with OK and a
// value for each return value (an empty one is dead), or with the first error. It never uses C++ stack in proportion to
// the depth of the recursion.
using RunDone = std::function<void(const absl::Status&, std::vector<Value> retvals)>;
void RunProgram(RunEnvironment environment, std::vector<Value> arguments, RunDone done);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_RUN_PROGRAM_H_
