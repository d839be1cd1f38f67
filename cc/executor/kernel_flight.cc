// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/kernel_flight.h"

#include <utility>

#include "absl/base/optimization.h"
#include "cc/executor/worker_profile.h"

namespace tensorflow_recursion {
namespace {

Message EndOf(const KernelFlight& flight) {
  Message message(Message::Kind::kKernelDone, flight.frame, flight.kernel->op);
  message.kernel.reset(flight.kernel);
  return message;
}

// Runs the kernel, and notes how long it takes if the run is profiled. It releases the inputs at once, so that their
// memory serves the next kernel on this thread.
void RunNow(const RunEnvironment& environment, KernelInFlight* kernel) {
  const int64_t start = environment.profiles ? ProfileClock() : 0;
  environment.runner->RunAsync(*kernel->node, &kernel->call,
                               [kernel](absl::Status status) { kernel->status = std::move(status); });
  kernel->ReleaseInputs();
  if (ABSL_PREDICT_FALSE(environment.profiles)) kernel->nanoseconds = ProfileClock() - start;
}

// Gives the kernel's output to the kernel that runs after it, and returns that one. Returns nullptr if there is no such
// kernel, or no output.
KernelInFlight* HandOn(KernelInFlight* kernel) {
  if (kernel->next == nullptr || !kernel->status.ok() || kernel->outputs[0].is_empty()) return nullptr;
  kernel->next->inputs[kernel->next->arrival] = kernel->outputs[0].Take();
  kernel->is_handed_on = true;
  return kernel->next.get();
}

}  // namespace

Message Fly(const KernelFlight& flight) {
  KernelInFlight* kernel = flight.kernel;
  while (kernel != nullptr && !flight.run->failed()) {
    RunNow(flight.run->environment, kernel);
    kernel = HandOn(kernel);
  }
  return EndOf(flight);
}

bool RunBeside(const KernelFlight& flight) {
  RunState* const run = flight.run;
  Inbox* const owner = flight.frame->owner;
  const bool is_offloaded = flight.kernel->way == KernelInFlight::Way::kOffloaded;
  Message message = Fly(flight);
  if (is_offloaded) run->EndOffload();
  if (owner->PostHere(std::move(message))) return true;  // the flight's activity is now the owner's
  run->EndActivity();
  return false;
}

void Send(const KernelFlight& flight) {
  flight.run->environment.schedule([flight] {
    Inbox* const owner = flight.frame->owner;
    if (RunBeside(flight)) owner->Wake();
  });
}

void Start(const KernelFlight& flight) {
  KernelInFlight* const kernel = flight.kernel;
  flight.run->environment.runner->RunAsync(*kernel->node, &kernel->call, [flight](absl::Status status) {
    RunState* const run = flight.run;
    flight.kernel->status = std::move(status);
    flight.frame->owner->Post(EndOf(flight));
    run->EndActivity();  // after Post, which has begun the owner's
  });
}

}  // namespace tensorflow_recursion
