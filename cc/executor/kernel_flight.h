// Kernels that run beside their worker: what other threads do with them.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_KERNEL_FLIGHT_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_KERNEL_FLIGHT_H_

#include "absl/status/status.h"
#include "cc/executor/frame.h"
#include "cc/executor/inbox.h"
#include "cc/executor/run_state.h"

namespace tensorflow_recursion {

// A kernel of `frame` that is on its way, with those that go on with its output, and with what they read.
struct KernelFlight {
  RunState* run;
  Frame* frame;
  KernelInFlight* kernel;  // owned by the message that ends it
};

// Runs the kernels, none of which is asynchronous, one after the other on this thread. Returns the message that ends
// the flight. Once the run has failed it runs nothing: nobody would read it.
Message Fly(const KernelFlight& flight);

// The same on a thread which must not be the worker's (one that went to sleep, or another one), and posts the message.
// Returns whether the owner of the frame sleeps, and this thread is to wake it (Inbox::Wake). Else all may be gone.
bool RunBeside(const KernelFlight& flight);

// The same on a thread of the run's pool, which goes on as the worker if that sleeps in the end.
void Send(const KernelFlight& flight);

// Starts an asynchronous kernel. It may end on a thread that must not work: its owner is woken elsewhere.
void Start(const KernelFlight& flight);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_KERNEL_FLIGHT_H_
