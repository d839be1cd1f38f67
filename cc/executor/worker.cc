// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/worker.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "absl/time/clock.h"
#include "cc/executor/run.h"

namespace tensorflow_recursion {
namespace {

// How long a worker that has many kernels in flight waits for one of them to end before it opens a further call, and
// how often it looks.
constexpr absl::Duration kInFlightPatience = absl::Milliseconds(5);
constexpr absl::Duration kInFlightNap = absl::Microseconds(20);

// How long a worker that shares compiled calls with others looks out for more before it leaves its thread: about what
// it takes to wake it again.
constexpr absl::Duration kLookOut = absl::Microseconds(100);

// How long the pieces of work between two looks should take. If they take longer, fewer are done before the next look,
// but at least so many.
constexpr absl::Duration kLongestInterval = absl::Microseconds(50);
constexpr int kShortestPollInterval = 8;

}  // namespace

Worker::Worker(Run* run, int index)
    : run_(run), parts_(&run->state, index, [this] {
        run_->idle_workers.Leave(this);
        Work(/*on_own_thread=*/false);
      }) {}

void Worker::WorkFromRoot(std::vector<Value> arguments) {
  parts_.inbox.Open();
  parts_.calls.OpenRoot(std::move(arguments));
  Work(/*on_own_thread=*/false);
}

// Works until nothing is left to do here. The caller has begun an activity of the run for it, which ends in here.
void Worker::Work(bool on_own_thread) {
  const RunEnvironment& environment = run_->state.environment;
  ProfileTimer timer(parts_.context.profile.get());
  is_on_own_thread_ = on_own_thread;
  StartSlice();
  const bool may_spread = environment.max_workers > 1;
  while (true) {
    while (Step()) {
    }
    if (ABSL_PREDICT_FALSE(timer.is_on())) timer.profile()->NoteBusy(timer.Lap());
    if (ABSL_PREDICT_FALSE(leaves_thread_)) {
      leaves_thread_ = false;
      return environment.start_thread([this] { Work(/*on_own_thread=*/true); });
    }
    const std::optional<KernelFlight> held = parts_.kernels.TakeHeld();
    const bool is_idle = may_spread && !held.has_value();
    if (is_idle) run_->idle_workers.Add(this);
    if (is_idle && (std::exchange(had_fork_, false) || parts_.compiled.waits_for_forks())) LookOut();
    if (parts_.inbox.Close()) {
      run_->state.EndActivity();  // This may delete *this, if no kernel is held.
      if (!held.has_value() || !RunBeside(*held)) return;
      if (timer.is_on()) timer.Lap();  // The time is that of the kernel, which is counted elsewhere.
      StartSlice();
      continue;
    }
    if (held.has_value()) parts_.kernels.Hold(*held);
    if (is_idle) run_->idle_workers.Leave(this);
  }
}

void Worker::StartSlice() {
  const RunEnvironment& environment = run_->state.environment;
  const bool has_end = !is_on_own_thread_ && environment.start_thread != nullptr;
  slice_end_ = has_end ? absl::Now() + environment.slice : absl::InfiniteFuture();
}

// Does one piece of work. Returns false if there is none, or if the worker has to leave its thread.
inline bool Worker::Step() {
  if (ABSL_PREDICT_FALSE(parts_.context.must_poll()) && !Poll()) return false;
  if (ABSL_PREDICT_FALSE(parts_.router.has_deferred())) {
    parts_.router.DeliverDeferred();
    return true;
  }
  if (parts_.queue.has_operators()) {
    ReadyOperator* const item = parts_.queue.PopOperator();
    Frame* const frame = item->frame;
    parts_.operators.Fire(item);
    parts_.frames.Unref(frame);
    return true;
  }
  if (ABSL_PREDICT_FALSE(parts_.compiled.has_any())) {
    parts_.kernels.SendHeld();
    parts_.calls.ResumeCompiled();
    return true;
  }
  if (parts_.queue.has_calls()) {
    if (ABSL_PREDICT_FALSE(parts_.kernels.flights().count() > 0) && AttendToKernels()) return true;
    const ReadyCall call = parts_.queue.PopCall();
    parts_.context.Spend(1);
    parts_.calls.Open(call.frame, call.op);
    return true;
  }
  if (TakeMail() || parts_.kernels.RunHeld() || parts_.kernels.RunFullestWave()) return true;
  if (parts_.incomplete_sites.empty() || parts_.kernels.has_held() || run_->state.failed()) return false;
  parts_.calls.OpenIncomplete(parts_.incomplete_sites.newest());
  return true;
}

// Looks after the kernels in flight before a call is opened: sends the one that is held, and sees whether others have
// ended. Returns whether messages have come.
ABSL_ATTRIBUTE_NOINLINE bool Worker::AttendToKernels() {
  parts_.kernels.SendHeld();
  if (parts_.inbox.MayHaveMail() && TakeMail()) return true;
  return parts_.kernels.flights().are_many() && AwaitMail();
}

// Waits a little for a message, which may tell that a kernel has ended. Returns whether one has come.
ABSL_ATTRIBUTE_NOINLINE bool Worker::AwaitMail() {
  const absl::Time end = absl::Now() + kInFlightPatience;
  while (!TakeMail()) {
    if (absl::Now() < end && !run_->state.failed()) {
      absl::SleepFor(kInFlightNap);
      continue;
    }
    parts_.kernels.flights().AllowMore();
    return false;
  }
  return true;
}

// Looks at cancellation, errors, memory, messages and idle workers: once in kPollInterval pieces of work. Returns
// whether to go on.
ABSL_ATTRIBUTE_NOINLINE bool Worker::Poll() {
  const absl::Duration now = absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  NextInterval(now);
  run_->state.WatchMemory(now);
  const RunEnvironment& environment = run_->state.environment;
  if (environment.is_cancelled && environment.is_cancelled()) {
    run_->state.Fail(absl::CancelledError("The run of a recursive function was cancelled"));
  }
  if (run_->state.failed()) return Abandon();
  if (parts_.inbox.MayHaveMail()) TakeMail();
  const absl::Time time = absl::Now();
  if (run_->idle_workers.MayHaveAny() && time >= run_->state.help_begins) GiveAway();
  if (std::exchange(parts_.context.restarts_slice, false)) StartSlice();
  leaves_thread_ = time > slice_end_;
  return !leaves_thread_;
}

// Says how much is done until the next look: kPollInterval, or as much less as the pieces of work since the last one,
// at `now`, took longer than kLongestInterval. A recursion on large tensors so looks every few calls.
void Worker::NextInterval(absl::Duration now) {
  const absl::Duration taken = std::max(now - std::exchange(last_poll_, now), absl::Microseconds(1));
  const auto fitting = static_cast<int>(interval_ * absl::FDivDuration(kLongestInterval, taken));
  interval_ = std::clamp(fitting, kShortestPollInterval, kPollInterval);
  parts_.context.budget = interval_;
}

// Drops all work, after an error. Nobody looks at the frames any more, and their pool frees them. Returns whether
// messages had come, so that there may be more.
bool Worker::Abandon() {
  parts_.queue.Clear();
  parts_.waves.Clear();
  parts_.router.ClearDeferred();
  parts_.incomplete_sites.Clear();
  parts_.partial_calls.Clear();
  parts_.compiled.Clear();
  if (!TakeMail()) return false;
  parts_.context.PollSoon();
  return true;
}

// Waits a little for a message that a busy worker may soon send. The worker looks out only where calls are compiled:
// else kernels that other workers hand to threads may need the thread that this one keeps.
void Worker::LookOut() {
  RunState& state = run_->state;
  const absl::Time end = absl::Now() + kLookOut;
  state.BeginLookOut();
  while (!parts_.inbox.MayHaveMail() && state.others_are_busy() && absl::Now() < end) {
    std::this_thread::yield();  // lets others have the processor who need it more
  }
  state.EndLookOut();
}

// --- Between workers ------------------------------------------------------------------------------

// Gives the oldest call to an idle worker. This worker keeps something to do: another call, or a compiled call. If it
// has only a compiled call, it gives a part of that.
void Worker::GiveAway() {
  const size_t kept = parts_.compiled.has_any() ? 0 : 1;
  if (parts_.queue.num_calls() <= kept) return SplitOff();
  const ReadyCall call = parts_.queue.oldest_call();
  // Where arguments have died, the call stays with the frame's owner.
  if (parts_.partial_calls.Find(call.frame, call.op) != nullptr) return;
  Worker* const helper = run_->TakeIdleWorker();
  if (helper == nullptr) return;
  const Op& op = call.frame->region->ops[call.op];
  Value* slots = call.frame->slots_of(op);
  Message message(Message::Kind::kOpenCall, call.frame, call.op);
  for (uint32_t i = 0; i < op.num_inputs; ++i) message.values.push_back(slots[i].Take());
  parts_.queue.RemoveOldestCall();
  helper->Post(std::move(message));
}

void Worker::SplitOff() {
  if (!parts_.compiled.MayFork()) return;
  Worker* const helper = run_->TakeIdleWorker();
  if (helper == nullptr) return;
  Message message(Message::Kind::kFork, nullptr);
  message.fork = parts_.compiled.SplitOff();
  if (message.fork == nullptr) return run_->idle_workers.Add(helper);
  helper->Post(std::move(message));
}

bool Worker::TakeMail() {
  mail_ = parts_.inbox.Take(std::move(mail_));
  if (mail_.empty()) return false;
  for (Message& message : mail_) Handle(&message);
  mail_.clear();
  return true;
}

void Worker::Handle(Message* message) {
  if (message->kind == Message::Kind::kKernelDone) return parts_.kernels.Land(message);
  if (run_->state.failed()) return message->ReleaseValues();
  Frame* const frame = message->frame;
  switch (message->kind) {
    case Message::Kind::kOpenCall:
      return parts_.calls.OpenGiven(frame, message->op, &message->values);
    case Message::Kind::kArgument:
      return parts_.router.DeliverMissingArgument(frame, message->index, message->values[0]);
    case Message::Kind::kResult:
      return parts_.router.DeliverResult(frame, message->op, message->index, message->values[0]);
    case Message::Kind::kChildEnded:
      return parts_.frames.Unref(frame);
    case Message::Kind::kFork:
      had_fork_ = true;
      return parts_.compiled.StartFork(std::move(message->fork));
    case Message::Kind::kForkEnded:
      had_fork_ = true;
      return parts_.calls.EndFork(message->fork.get());
    case Message::Kind::kKernelDone:
      return;  // was handled above
  }
}

}  // namespace tensorflow_recursion
