// The scheduler's order of work, for one worker: operators that are ready, newest first; then calls
// that have all their arguments, newest first; then, with nothing else to do, calls that have some.
// So a frame does all it can before it calls, calls go depth first, and the oldest call, which
// promises the most work, is the one to give away.
//
// A frame belongs to one worker and only its owner touches it, so the hot path holds no lock and no
// atomic. What crosses workers (arguments to a frame given away, its results, kernels that end on
// other threads) is a message in the owner's inbox.
//
// Everything that unwinds is a worklist. C++ stack use does not grow with depth.
// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/worker.h"

#include <utility>

#include "absl/time/clock.h"
#include "cc/executor/run.h"
#include "cc/executor/worker_inline.h"

namespace tensorflow_recursion {
namespace {

// Kernels of a worker in flight, from which on it waits a little for one to end before it opens a further call.
constexpr int64_t kFirstInFlightLimit = 256;
constexpr absl::Duration kInFlightPatience = absl::Milliseconds(5);
constexpr absl::Duration kInFlightNap = absl::Microseconds(20);

}  // namespace

Worker::Worker(Run* run, int index)
    : run_(run),
      index_(index),
      program_(*run->environment.program),
      traces_(run->environment.trace),
      pool_(program_, &run->frame_bytes),
      inputs_(program_.max_inputs, Value::Empty()),
      in_flight_limit_(kFirstInFlightLimit),
      budget_(kPollInterval) {
  random_.seed(static_cast<unsigned>(run->environment.shuffle_seed) + static_cast<unsigned>(index));
}

// --- The order of work ----------------------------------------------------------------------------

inline Item* Worker::PopReady() {
  if (ABSL_PREDICT_FALSE(run_->environment.shuffle_seed != 0)) {
    std::swap(ready_[random_() % ready_.size()], ready_[ready_.size() - 1]);
  }
  return ready_.pop();
}

// One piece of work; false if there is none.
inline bool Worker::Step() {
  if (ABSL_PREDICT_FALSE(budget_ <= 0) && !Poll()) return false;
  if (ABSL_PREDICT_FALSE(!late_ports_.empty())) {
    const LatePort late = late_ports_.back();
    late_ports_.pop_back();
    DeliverPort(late.frame, late.port, late.value);
    Unref(late.frame);
    return true;
  }
  if (ABSL_PREDICT_FALSE(!late_arguments_.empty())) {
    const LateArgument late = late_arguments_.back();
    late_arguments_.pop_back();
    DeliverArgument(late.callee, late.index, late.value);
    return true;
  }
  if (!ready_.empty()) {
    Item* const item = PopReady();
    Frame* const frame = item->frame;
    Fire(item);
    Unref(frame);
    return true;
  }
  if (calls_.size() > calls_begin_) {
    if (ABSL_PREDICT_FALSE(num_in_flight_ >= in_flight_limit_) && AwaitMail()) return true;
    const Call* const call = calls_.pop();
    --budget_;
    OpenSite(call->frame, call->op, nullptr);
    return true;
  }
  if (TakeMail()) return true;
  if (!partial_.empty() && !run_->failed()) {
    OpenPartialSites(partial_.back());
    return true;
  }
  return false;
}

// Works until nothing is left to do here. The caller has begun an activity, which ends with this.
void Worker::Work(bool on_own_thread) {
  Run* const run = run_;
  slice_end_ =
      on_own_thread || !run->environment.start_thread ? absl::InfiniteFuture() : absl::Now() + run->environment.slice;
  while (true) {
    while (Step()) {
    }
    if (ABSL_PREDICT_FALSE(leaves_thread_)) {
      leaves_thread_ = false;
      return run->environment.start_thread([this] { Work(true); });
    }
    if (run->MaySpread()) run->ReturnIdleWorker(this);
    {
      absl::MutexLock lock(&mutex_);
      if (inbox_.empty()) {
        active_ = false;
        break;
      }
    }
    if (run->MaySpread()) run->LeaveIdle(this);
  }
  run->EndActivity();  // may delete *this
}

// Other devices are slower to answer than calls are to open: without a pause a recursion that goes back and forth would
// be unrolled in full breadth before the first answer comes. Answers that do not come at all wait for calls not opened
// yet, as those of a deep recursion do: then there may be more.
ABSL_ATTRIBUTE_NOINLINE bool Worker::AwaitMail() {
  const absl::Time end = absl::Now() + kInFlightPatience;
  while (!TakeMail()) {
    if (absl::Now() < end && !run_->failed()) {
      absl::SleepFor(kInFlightNap);
      continue;
    }
    in_flight_limit_ = 2 * num_in_flight_;
    return false;
  }
  return true;
}

// Whether to go on.
bool Worker::Poll() {
  budget_ = kPollInterval;
  const RunEnvironment& environment = run_->environment;
  if (environment.is_cancelled && environment.is_cancelled()) {
    run_->Fail(absl::CancelledError("The run of a recursive function was cancelled"));
  }
  if (run_->failed()) {
    // Frames are left to their pools: nothing looks at them any more.
    while (!ready_.empty()) ready_.pop()->value.Release();
    calls_.clear();
    calls_begin_ = 0;
    partial_.clear();
    partial_gaps_ = 0;
    partial_calls_.clear();
    for (LateArgument& late : late_arguments_) late.value.Release();
    late_arguments_.clear();
    for (LatePort& late : late_ports_) late.value.Release();
    late_ports_.clear();
    if (!TakeMail()) return false;
    budget_ = 0;
    return true;
  }
  if (has_mail_.load(std::memory_order_relaxed)) TakeMail();
  if (run_->HasIdleWorker()) GiveAway();
  leaves_thread_ = absl::Now() > slice_end_;
  return !leaves_thread_;
}

// --- Between workers ------------------------------------------------------------------------------

void Worker::Post(Message message) {
  // Nobody reads mail any more. Thousands of receives may end at once then, and waking a worker for each would flood
  // the pool that the next step needs.
  if (run_->failed()) {
    for (Value& value : message.values) value.Release();
    return;
  }
  bool wake = false;
  {
    absl::MutexLock lock(&mutex_);
    inbox_.push_back(std::move(message));
    has_mail_.store(true, std::memory_order_release);
    wake = !active_;
    active_ = true;
  }
  if (!wake) return;
  run_->BeginActivity();
  run_->environment.schedule([this] {
    run_->LeaveIdle(this);
    Work();
  });
}

// Gives the oldest call to an idle worker, keeping at least one.
void Worker::GiveAway() {
  if (calls_.size() < calls_begin_ + 2) return;
  Worker* helper = run_->TakeIdleWorker();
  if (helper == nullptr) return;
  const Call item = calls_[calls_begin_];
  const Op& op = item.frame->region->ops[item.op];
  Value* slots = item.frame->values() + op.slot;
  Message message(Message::Kind::kOpenSite, item.frame, item.op);
  // Where arguments have died, the call stays with the frame's owner.
  if (FindPartialCall(item.frame, item.op) != nullptr) return run_->ReturnIdleWorker(helper);
  for (uint32_t i = 0; i < op.num_inputs; ++i) message.values.push_back(slots[i].Take());
  ++calls_begin_;
  if (calls_begin_ > calls_.size() / 2) {
    calls_.erase_front(calls_begin_);
    calls_begin_ = 0;
  }
  helper->Post(std::move(message));
}

bool Worker::TakeMail() {
  if (!has_mail_.load(std::memory_order_acquire)) return false;
  std::vector<Message> mail;
  {
    absl::MutexLock lock(&mutex_);
    mail.swap(inbox_);
    has_mail_.store(false, std::memory_order_relaxed);
  }
  for (Message& message : mail) Handle(&message);
  return !mail.empty();
}

void Worker::Handle(Message* message) {
  Frame* frame = message->frame;
  if (message->kind == Message::Kind::kKernelDone) {
    --num_in_flight_;
    const KernelNode& node = program_.kernels[frame->region->ops[message->op].index];
    run_->frame_bytes.fetch_sub(node.in_flight_bytes, std::memory_order_relaxed);
  }
  if (run_->failed()) {
    for (Value& value : message->values) value.Release();
    return;
  }
  switch (message->kind) {
    case Message::Kind::kOpenSite:
      OpenSite(frame, message->op, &message->values);
      break;
    case Message::Kind::kArgument:
      DeliverArgument(frame, message->index, message->values[0]);
      break;
    case Message::Kind::kResult:
      DeliverResult(frame, message->op, message->index, message->values[0]);
      break;
    case Message::Kind::kChildEnded:
      Unref(frame);
      break;
    case Message::Kind::kKernelDone: {
      const Op& op = frame->region->ops[message->op];
      const KernelNode& node = program_.kernels[op.index];
      if (!message->kernel->status.ok()) {
        run_->FailAt(message->kernel->status, frame);
        return;
      }
      FinishKernel(frame, op, node, message->kernel->outputs.data());
      Unref(frame);
      break;
    }
  }
}

}  // namespace tensorflow_recursion
