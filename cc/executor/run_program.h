// Runs a Program once: the tagged executor.
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
  // Workers the run may spread over; the caller's thread is the first.
  int max_workers = 1;
  // How long a run goes on by itself before it gives calls to other workers: one that has slept takes some 50 us to get
  // going, in which the first would have done what it gave away.
  absl::Duration alone = absl::ZeroDuration();
  // Operators of the main graph go to other threads as they do in stock execution, to any number of them.
  bool spreads_main_graph = false;
  // Runs a closure on another thread; needed for more than one worker and for asynchronous kernels.
  std::function<void(std::function<void()>)> schedule;
  // Starts a thread of its own for a closure. A worker that has held a thread of `schedule` for longer than
  // `slice` goes on there, so that other work of the process comes to its turn. Empty: it stays.
  std::function<void(std::function<void()>)> start_thread;
  absl::Duration slice = absl::Milliseconds(5);
  // Polled every few microseconds.
  std::function<bool()> is_cancelled;
  // Told of the first error as it happens, so that kernels in flight can be aborted.
  std::function<void(const absl::Status&)> on_error;
  // Sends arithmetic through kernels too, so that a trace shows it.
  bool trace = false;
  // Counts where the time goes.
  bool profiles = false;
  // Told of each call that the main graph makes.
  std::function<void()> on_main_call;
  // Ends a recursion that is about to take all memory.
  MemoryGauge memory;
  // Tests: picks ready operators at random instead of the newest first. 0 is off.
  uint64_t shuffle_seed = 0;
};

// Takes the arguments over and calls `done` once, when everything that the run started has ended: with
// OK and a value for each retval (empty: dead), or with the first error. Never uses C++ stack in
// proportion to the depth of the recursion.
using RunDone = std::function<void(const absl::Status&, std::vector<Value> retvals)>;
void RunProgram(RunEnvironment environment, std::vector<Value> arguments, RunDone done);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_RUN_PROGRAM_H_
