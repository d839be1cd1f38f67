// One thread's share of a run.
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
// what was suspended of compiled calls; calls that have all their arguments, newest first; messages; kernels that wait
// for others of their node; and with nothing else to do, calls that have only some of their arguments. So a frame does
// all it can before it calls, and calls go depth first.
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

  // The first worker of a run, before any other is made: begins to work on this thread.
  void WorkFromRoot(std::vector<Value> arguments);

  // Any thread.
  void Post(Message message) { parts_.inbox.Post(std::move(message)); }

 private:
  void Work(bool on_own_thread);
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool Step();  // saves 2 % of the instructions of a deep recursion of small calls
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
  std::vector<Message> mail_;                            // that TakeMail handles
  absl::Time slice_end_ = absl::InfiniteFuture();        // when to leave this thread to others
  absl::Duration last_poll_ = absl::InfiniteDuration();  // when, on a steady clock
  int interval_ = kPollInterval;
  bool leaves_thread_ = false;
  bool is_on_own_thread_ = false;
  bool had_fork_ = false;  // or one's own has come back, since the worker last looked out for messages
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_H_
