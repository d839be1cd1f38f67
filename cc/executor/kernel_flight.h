// Does on other threads what kernels need that run beside their worker.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_KERNEL_FLIGHT_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_KERNEL_FLIGHT_H_

#include "absl/status/status.h"
#include "cc/executor/frame.h"
#include "cc/executor/inbox.h"
#include "cc/executor/run_state.h"

namespace tensorflow_recursion {

// A kernel of `frame` that runs beside the worker, together with those that run right after it (KernelInFlight::next).
struct KernelFlight {
  RunState* run;
  Frame* frame;
  // Owned by the flight. The message that ends the flight takes it over.
  KernelInFlight* kernel;
};

// Runs the kernels, none of which is asynchronous, one after the other on this thread. Returns the message that ends
// the flight. Once the run has failed it runs none, because nobody would read their outputs.
Message Fly(const KernelFlight& flight);

// The same, but posts the message. This thread must not be inside of the frame's worker, though it may have been until
// the worker went to sleep. Returns whether the worker sleeps: then this thread has to wake it (Inbox::Wake). If it
// returns false, the run may have ended and be deleted.
bool RunBeside(const KernelFlight& flight);

// The same on a thread of the run's pool, which goes on as the worker if that sleeps in the end.
void Send(const KernelFlight& flight);

// Starts an asynchronous kernel. It may end on a thread that must not do a worker's work, so the worker is woken on
// another one.
void Start(const KernelFlight& flight);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_KERNEL_FLIGHT_H_
