// A worker is one thread's share of a run.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_H_

#include <vector>

#include "absl/base/attributes.h"
#include "absl/time/time.h"
#include "cc/executor/inbox.h"
#include "cc/executor/worker_parts.h"
#include "cc/values/value.h"

namespace tensorflow_recursion {

class Run;

// Does what there is to do, in this order: values that wait for their turn; operators that are ready, newest first;
// what was suspended of compiled calls; calls that have all their arguments, newest first; messages; waves, which are
// kernels that wait for others of their node; and with nothing else to do, calls that have only some of their
// arguments. So a frame does all it can before it calls, and calls go depth first.
//
// A frame belongs to one worker and only its owner touches it, so the hot path holds no lock and no atomic. Work
// spreads by giving whole calls away: every kPollInterval pieces of work a busy worker looks whether another is idle,
// and posts its oldest call to it.
//
// Everything that unwinds (results that pass upwards, deaths, frames that end) is a loop over a list. The use of the
// C++ stack does not grow with depth.
class Worker {
 public:
  Worker(Run* run, int index);

  // Begins to work on this thread, as the first worker of a run.
  void WorkFromRoot(std::vector<Value> arguments);

  // May be called by any thread.
  void Post(Message message) { parts_.inbox.Post(std::move(message)); }

 private:
  void Work(bool on_own_thread);
  // To inline it saves 2 % of the instructions of a deep recursion of small calls.
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool Step();
  void StartSlice();
  bool AttendToKernels();
  bool AwaitMail();
  bool Poll();
  void NextInterval(absl::Duration now);
  bool Abandon();
  void LookOut();
  void GiveAway();
  void SplitOff();
  bool TakeMail();
  void Handle(Message* message);

  Run* const run_;
  WorkerParts parts_;
  // The messages that TakeMail is handling.
  std::vector<Message> mail_;
  // When the worker shall leave this thread to others.
  absl::Time slice_end_ = absl::InfiniteFuture();
  // When the worker last looked up, by a steady clock, and how many pieces of work it does between two looks.
  absl::Duration last_poll_ = absl::InfiniteDuration();
  int interval_ = kPollInterval;
  // The worker has to go on on a thread of its own.
  bool leaves_thread_ = false;
  bool is_on_own_thread_ = false;
  // A fork has come, or one of the worker's own has come back, since it last looked out for messages.
  bool had_fork_ = false;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_H_
