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

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cc/base/status.h"
#include "cc/executor/run.h"

namespace tensorflow_recursion {
namespace {

// Work between two looks at cancellation, mail and idle workers; a call weighs one.
constexpr int kPollInterval = 512;
// Kernels of a worker in flight, from which on it waits a little for one to end before it opens a further call.
constexpr int64_t kFirstInFlightLimit = 256;
constexpr absl::Duration kInFlightPatience = absl::Milliseconds(5);
constexpr absl::Duration kInFlightNap = absl::Microseconds(20);
// An ordinary kernel takes as long as a few calls, an expensive one as long as a poll interval.
constexpr int kKernelWeight = 8;
// Gaps in the list of partial frames that are left alone: it mostly grows and shrinks at its end.
constexpr size_t kMostPartialGaps = 64;

}  // namespace

Worker::Worker(Run* run, int index)
    : run_(run),
      index_(index),
      program_(*run->environment.program),
      unboxes_(!run->environment.trace),
      pool_(program_, &run->frame_bytes),
      inputs_(program_.max_inputs, Value::Empty()),
      in_flight_limit_(kFirstInFlightLimit),
      budget_(kPollInterval) {
  random_.seed(static_cast<unsigned>(run->environment.shuffle_seed) + static_cast<unsigned>(index));
}

// --- Queues ---------------------------------------------------------------------------------------

inline void Worker::Push(Frame* frame, uint32_t op, Value value) {
  ++frame->live;
  Item* const item = ready_.push();
  item->frame = frame;
  item->op = op;
  value.CopyTo(&item->value);
}

inline void Worker::PushCall(Frame* frame, uint32_t op) {
  ++frame->live;
  Call* const call = calls_.push();
  call->frame = frame;
  call->op = op;
}

inline Item* Worker::PopReady() {
  if (ABSL_PREDICT_FALSE(run_->environment.shuffle_seed != 0)) {
    std::swap(ready_[random_() % ready_.size()], ready_[ready_.size() - 1]);
  }
  return ready_.pop();
}

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
    odd_sites_.clear();
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
  if (FindOddSite(item.frame, item.op) != nullptr) return run_->ReturnIdleWorker(helper);
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

// --- Values on their way --------------------------------------------------------------------------

inline void Worker::CountDown(Frame* frame, uint32_t op) {
  if (--frame->pending()[op] == 0) Push(frame, op);
}

inline void Worker::DeliverControl(Frame* frame, const Edge& edge) {
  if (edge.kind == EdgeKind::kOnly) {
    Push(frame, edge.op);
  } else if (ABSL_PREDICT_TRUE(edge.kind == EdgeKind::kControl)) {
    CountDown(frame, edge.op);
  } else {
    MarkUnion(frame, edge.op, edge.index);
  }
}

inline void Worker::DeliverControls(Frame* frame, const Port& port) {
  const Edge* edges = frame->region->edges.data();
  for (uint32_t e = port.controls; e < port.end; ++e) {
    DeliverControl(frame, edges[e]);
  }
}

// Gives the value to all who read the port. Operators that only let it pass (merges, gates, results,
// exits) are walked through on the spot, callers of callers included: a loop, never a recursion.
inline void Worker::DeliverPort(Frame* frame, const Port* port, Value value) {
  while (port != nullptr) {
    if (port->controls != port->end) DeliverControls(frame, *port);
    if (port->begin == port->controls) return value.Release();
    const Edge* edge = frame->region->edges.data() + port->begin;
    const Edge* last = frame->region->edges.data() + port->controls - 1;
    for (; edge != last; ++edge) DeliverCopy(frame, *edge, value.Copy());
    if (last->kind == EdgeKind::kOnly) return Push(frame, last->op, value);
    if (ABSL_PREDICT_TRUE(last->kind == EdgeKind::kData)) return Store(frame, *last, value);
    port = PassOn(&frame, *last, &value);
  }
}

inline void Worker::Store(Frame* frame, const Edge& edge, Value value) {
  value.CopyTo(&frame->values()[edge.slot]);
  if (value.owns()) frame->owns_tensors = 1;
  CountDown(frame, edge.op);
}

// For all readers but the last: what would pass on at once waits for its turn, or this would recurse.
void Worker::DeliverCopy(Frame* frame, const Edge& edge, Value value) {
  if (edge.kind == EdgeKind::kOnly) return Push(frame, edge.op, value);
  if (edge.kind == EdgeKind::kData) return Store(frame, edge, value);
  const Port* port = PassOn(&frame, edge, &value);
  if (port == nullptr) return;
  ++frame->live;
  late_ports_.push_back({frame, port, value});
}

// Where a value goes that comes along an edge that isn't plain data: the next port, in *frame, or
// nullptr if it stays there.
inline const Port* Worker::PassOn(Frame** frame, const Edge& edge, Value* value) {
  const Region& region = *(*frame)->region;
  const Op& op = region.ops[edge.op];
  switch (edge.kind) {
    case EdgeKind::kGate: {
      const uint16_t decided = (*frame)->pending()[op.index];
      if (decided > 0) {
        DeliverWholeOp(*frame, op);
        return &region.ports[op.port + decided - 1];
      }
      value->CopyTo(&(*frame)->values()[edge.slot]);
      if (value->owns()) (*frame)->owns_tensors = 1;
      return nullptr;
    }
    case EdgeKind::kMerge: {
      if (ABSL_PREDICT_FALSE(!op.passes_on)) {
        StoreInMerge(*frame, edge, *value);
        return nullptr;
      }
      uint16_t& state = (*frame)->pending()[edge.op];
      if ((state & kMergeDecided) != 0) {
        value->Release();  // another input has won
        return nullptr;
      }
      state |= kMergeDecided;
      return &region.ports[op.port];
    }
    case EdgeKind::kResult: {
      *value = value->Escape();
      Frame* const caller = (*frame)->parent;
      const Op& site = caller->region->ops[(*frame)->site_op];
      if (ABSL_PREDICT_FALSE(caller->owner != this) || op.index >= site.num_ports) {
        DeliverResult(caller, (*frame)->site_op, op.index, *value);
        return nullptr;
      }
      *frame = caller;
      return &caller->region->ports[site.port + op.index];
    }
    case EdgeKind::kExit: {
      *value = value->Escape();
      const Loop& loop = *region.loop;
      *frame = (*frame)->parent;
      return &loop.parent->ports[loop.parent->ops[loop.start_op].port + op.index];
    }
    case EdgeKind::kSiteArgument:
      DeliverSiteArgument(*frame, edge, *value);
      return nullptr;
    default:
      Store(*frame, edge, *value);
      return nullptr;
  }
}

void Worker::StoreInMerge(Frame* frame, const Edge& edge, Value value) {
  Value& slot = frame->values()[edge.slot];
  if (!slot.is_empty()) return value.Release();  // another input has won
  slot = value;
  slot.position = edge.index;
  if (value.owns()) frame->owns_tensors = 1;
  CountDown(frame, edge.op);
}

// Control edges of the operator itself, not of one port.
inline void Worker::DeliverWholeOp(Frame* frame, const Op& op) {
  if (op.has_controls) DeliverControls(frame, frame->region->ports[op.port + op.num_ports]);
}

// Whether the device that decides on the call has said that it lives.
inline bool Worker::IsOpened(Frame* frame, const Op& op) {
  return !frame->values()[op.slot + op.num_inputs - 1].is_empty();
}

void Worker::DeliverSiteArgument(Frame* frame, const Edge& edge, Value value) {
  const Op& op = frame->region->ops[edge.op];
  uint16_t& pending = frame->pending()[edge.op];
  if (op.num_tokens > 1) {
    size_t dead = 0;  // that came before
    if (const OddSite* odd = FindOddSite(frame, edge.op); odd != nullptr) {
      if (odd->child != nullptr) {
        late_arguments_.push_back({odd->child, edge.index, value});
        if (--pending == 0) odd_sites_.erase({frame, edge.op});
        return;
      }
      dead = odd->dead.size() - value.is_dead();
    }
    // A call counts as partial from its first live argument on: dead ones alone must not open a frame. If another
    // device decides whether it lives, from when it has done so.
    const bool waits_to_open = program_.sites[op.index].waits_to_open;
    const bool was_partial = waits_to_open ? IsOpened(frame, op) : pending + dead < op.num_tokens;
    if (pending == 1) {
      if (was_partial && --frame->partial_sites == 0) UnlinkPartial(frame);
    } else if (!was_partial && !value.is_dead() && (!waits_to_open || edge.index + 1 == op.num_inputs)) {
      if (frame->partial_sites++ == 0) LinkPartial(frame);
    }
  }
  if (!value.is_dead()) value.CopyTo(&frame->values()[edge.slot]);
  if (value.owns()) frame->owns_tensors = 1;
  if (--pending > 0) return;
  PushCall(frame, edge.op);
}

// nullptr for the calls that are as usual.
inline OddSite* Worker::FindOddSite(Frame* caller, uint32_t op) {
  if (ABSL_PREDICT_TRUE(!caller->has_odd_sites)) return nullptr;
  auto position = odd_sites_.find({caller, op});
  return position == odd_sites_.end() ? nullptr : &position->second;
}

OddSite& Worker::MakeOddSite(Frame* caller, uint32_t op) {
  caller->has_odd_sites = 1;
  return odd_sites_[{caller, op}];
}

void Worker::ForgetOddSites(Frame* caller) {
  for (uint32_t i = 0; i < caller->region->num_counted; ++i) {
    if (caller->region->ops[i].kind == OpKind::kSite) odd_sites_.erase({caller, i});
  }
}

// Whether this is new: the same death may be told twice.
bool Worker::LearnDeadArgument(Frame* caller, const DeathEvent& event) {
  if (caller->pending()[event.op] == 0) return false;
  std::vector<uint32_t>& dead = MakeOddSite(caller, event.op).dead;
  if (std::find(dead.begin(), dead.end(), event.index) != dead.end()) return false;
  dead.push_back(event.index);
  return true;
}

// Hands a function's argument or a loop's variable to its consumers.
inline void Worker::DeliverEntry(Frame* frame, uint32_t entry, Value value) {
  if (entry == kNone) return value.Release();
  const Op& op = frame->region->ops[entry];
  const uint32_t port = op.port;
  if (ABSL_PREDICT_FALSE(value.is_dead())) return Kill(frame, frame->region->port_deaths[port]);
  if (op.home != kNone && value.kind == Value::Kind::kTensor) {
    frame->values()[op.home] = value;
    frame->owns_tensors = 1;
    value = Value::Borrow(value.tensor);
  }
  DeliverPort(frame, &frame->region->ports[port], value);
}

// An argument for a frame that is already open.
void Worker::DeliverArgument(Frame* callee, uint32_t index, Value value) {
  if (callee->owner != this) {
    Message message(Message::Kind::kArgument, callee, 0, index);
    message.values.push_back(value);
    return callee->owner->Post(std::move(message));
  }
  const std::vector<uint32_t>& entries = callee->region->entries;
  DeliverEntry(callee, index < entries.size() ? entries[index] : kNone, value);
  if (--callee->missing == 0) Unref(callee);
}

void Worker::DeliverResult(Frame* caller, uint32_t op, uint32_t index, Value value) {
  if (ABSL_PREDICT_FALSE(caller->owner != this)) {
    Message message(Message::Kind::kResult, caller, op, index);
    message.values.push_back(value);
    return caller->owner->Post(std::move(message));
  }
  const Op& site = caller->region->ops[op];
  if (index >= site.num_ports) return value.Release();  // a result that this caller does not read
  if (ABSL_PREDICT_FALSE(value.is_dead())) return Kill(caller, caller->region->port_deaths[site.port + index]);
  DeliverPort(caller, &caller->region->ports[site.port + index], value);
}

void Worker::MarkUnion(Frame* frame, uint32_t op, uint32_t index) {
  Value& mask = frame->values()[frame->region->ops[op].slot + index / 64];
  const uint64_t bit = uint64_t{1} << (index % 64);
  if ((mask.bits & bit) != 0) return;
  mask.bits |= bit;
  CountDown(frame, op);
}

// --- Operators ------------------------------------------------------------------------------------

// Where the item's operator finds its inputs, side by side. One that came along has to be read before anything
// is delivered.
inline Value* Worker::InputsOf(Item* item, const Op& op) {
  switch (op.inputs) {
    case InputsIn::kSlots:
      return item->frame->values() + op.slot;
    case InputsIn::kItem:
      return &item->value;
    case InputsIn::kTable:
      return Gather(item->frame, op);
    case InputsIn::kItemTable:
      break;
  }
  const Value* table = item->frame->region->inputs.data() + op.slot;
  Value* inputs = inputs_.data();
  for (uint32_t i = 0; i < op.num_inputs; ++i) inputs[i] = table[i];
  if (op.only < op.num_inputs) item->value.CopyTo(&inputs[op.only]);
  return inputs;
}

inline Value* Worker::Gather(Frame* frame, const Op& op) {
  const Value* table = frame->region->inputs.data() + op.slot;
  for (uint32_t i = 0; i < op.num_inputs; ++i) {
    inputs_[i] = table[i].is_empty() ? frame->values()[table[i].position].Take() : table[i];
  }
  return inputs_.data();
}

inline void Worker::Fire(Item* item) {
  Frame* const frame = item->frame;
  const uint32_t index = item->op;
  const Op& op = frame->region->ops[index];
  Value* inputs = InputsOf(item, op);
  switch (op.kind) {
    case OpKind::kScalar: {
      Value result;
      if (ABSL_PREDICT_TRUE(unboxes_) && ABSL_PREDICT_TRUE(op.scalar(inputs, &result))) {
        if (ABSL_PREDICT_FALSE(inputs[0].owns())) inputs[0].Release();  // the vector that a number was read from
        DeliverWholeOp(frame, op);
        DeliverPort(frame, &frame->region->ports[op.port], Value::Scalar(result.bits));
      } else {
        FireKernel(frame, index, op, inputs);
      }
      break;
    }
    case OpKind::kKernel:
      FireKernel(frame, index, op, inputs);
      break;
    case OpKind::kPass:
      FirePass(frame, op, inputs);
      break;
    case OpKind::kSwitch:
      FireSwitch(frame, op, inputs);
      break;
    case OpKind::kBranch:
      FireBranch(frame, op, inputs);
      break;
    case OpKind::kSwitchN:
      FireSwitchN(frame, op, inputs);
      break;
    case OpKind::kMerge:
      FireMerge(frame, op);
      break;
    case OpKind::kUnion:
      DeliverWholeOp(frame, op);
      break;
    case OpKind::kLoopStart:
      FireLoopStart(frame, op);
      break;
    case OpKind::kLoopNext:
      FireLoopNext(frame, op);
      break;
    case OpKind::kRetval:
      run_->retvals[op.index].Release();
      run_->retvals[op.index] = inputs[0].Take();
      break;
    case OpKind::kRetain:
      FireRetain(frame, op, inputs);
      break;
    case OpKind::kRecall:
      FireRecall(frame, op, inputs);
      break;
    case OpKind::kSend:
      FireKernel(frame, index, op, inputs);
      break;
    case OpKind::kSite:  // a call without tokens of its own: constant arguments in a region without conditions
      PushCall(frame, index);
      break;
    case OpKind::kGate:
    case OpKind::kResult:
    case OpKind::kExit:
    case OpKind::kArgument:
    case OpKind::kEntry:
    case OpKind::kTrigger:
      break;  // never queued
  }
}

void Worker::FireKernel(Frame* frame, uint32_t index, const Op& op, Value* inputs) {
  const KernelNode& node = program_.kernels[op.index];
  const KernelRunner::Cost cost = run_->environment.runner->CostOf(node);
  if (ABSL_PREDICT_FALSE(cost == KernelRunner::Cost::kAsynchronous))
    return LaunchKernel(frame, index, op, inputs, node, cost);
  if (ABSL_PREDICT_FALSE(cost == KernelRunner::Cost::kExpensive) && HasMoreWork() && run_->BeginOffload()) {
    return LaunchKernel(frame, index, op, inputs, node, cost);
  }
  budget_ -= cost == KernelRunner::Cost::kExpensive ? kPollInterval : kKernelWeight;
  if (outputs_.size() < run_->max_outputs) outputs_.resize(run_->max_outputs, Value::Empty());
  KernelCall call{inputs, outputs_.data(), TagOf(frame), index_, false};
  if (op.kind == OpKind::kSend) call.is_dead = inputs[0].is_dead();
  const absl::Status status = run_->environment.runner->Run(node, absl::MakeSpan(&call, 1));
  for (uint32_t i = 0; i < op.num_inputs; ++i) call.inputs[i].Release();
  if (ABSL_PREDICT_FALSE(!status.ok())) {
    for (uint32_t i = 0; i < op.num_ports; ++i) outputs_[i].Release();
    budget_ = 0;
    return run_->FailAt(status, frame);
  }
  FinishKernel(frame, op, node, outputs_.data());
}

// Takes the outputs over.
void Worker::FinishKernel(Frame* frame, const Op& op, const KernelNode& node, Value* outputs) {
  bool any = op.num_ports == 0;
  for (uint32_t i = 0; i < op.num_ports; ++i) {
    if (ABSL_PREDICT_FALSE(outputs[i].is_empty())) {
      if (op.may_be_dead) {
        Kill(frame, frame->region->port_deaths[op.port + i]);
        continue;
      }
      for (uint32_t j = i; j < op.num_ports; ++j) outputs[j].Release();
      budget_ = 0;
      return run_->FailAt(absl::InternalError(absl::StrCat("Missing output ", i, "\n\t [[{{node ", node.name, "}}]]")),
                          frame);
    }
    any = true;
    DeliverPort(frame, &frame->region->ports[op.port + i], outputs[i].Take());
  }
  if (ABSL_PREDICT_TRUE(any)) {
    DeliverWholeOp(frame, op);
  } else {
    Kill(frame, frame->region->port_deaths[op.port + op.num_ports]);
  }
}

// Lets the kernel run elsewhere: by itself if it is asynchronous, else on another thread while this
// worker goes on with what else there is.
void Worker::LaunchKernel(Frame* frame, uint32_t index, const Op& op, Value* inputs, const KernelNode& node,
                          KernelRunner::Cost cost) {
  auto kernel = std::make_unique<KernelInFlight>();
  for (uint32_t i = 0; i < op.num_inputs; ++i) kernel->inputs.push_back(inputs[i].Take());
  kernel->outputs.resize(op.num_ports, Value::Empty());
  kernel->call.inputs = kernel->inputs.data();
  kernel->call.outputs = kernel->outputs.data();
  kernel->call.tag = TagOf(frame);
  if (op.kind == OpKind::kSend) kernel->call.is_dead = kernel->inputs[0].is_dead();
  ++frame->live;
  ++num_in_flight_;
  run_->BeginActivity();
  run_->frame_bytes.fetch_add(node.in_flight_bytes, std::memory_order_relaxed);
  KernelInFlight* const raw = kernel.release();
  Worker* const owner = frame->owner;
  Run* const run = run_;
  const bool is_offloaded = cost != KernelRunner::Cost::kAsynchronous;
  auto done = [run, owner, frame, index, raw, is_offloaded](absl::Status status) {
    raw->status = std::move(status);
    Message message(Message::Kind::kKernelDone, frame, index);
    message.kernel.reset(raw);
    if (is_offloaded) run->EndOffload();
    owner->Post(std::move(message));
    run->EndActivity();  // after Post, which has begun the owner's
  };
  KernelRunner* const runner = run->environment.runner;
  if (!is_offloaded) return runner->RunAsync(node, &raw->call, std::move(done));
  run->environment.schedule([runner, &node, raw, done] { runner->RunAsync(node, &raw->call, done); });
}

void Worker::FirePass(Frame* frame, const Op& op, Value* inputs) {
  for (uint32_t i = 0; i < op.num_ports; ++i) DeliverPort(frame, &frame->region->ports[op.port + i], inputs[i].Take());
  DeliverWholeOp(frame, op);
}

bool Worker::ReadPredicate(Frame* frame, const Value& value, bool* result) {
  if (ABSL_PREDICT_TRUE(value.is_scalar())) {
    *result = value.boolean;
    return true;
  }
  const tensorflow::Tensor tensor = TensorFromValue(value, tensorflow::DT_BOOL);
  if (tensor.dtype() == tensorflow::DT_BOOL && tensor.dims() == 0 && tensor.IsInitialized()) {
    *result = tensor.scalar<bool>()();
    return true;
  }
  budget_ = 0;
  run_->FailAt(InvalidArgument("The predicate of a conditional in '", frame->region->name,
                               "' must be a scalar bool, got shape ", tensor.shape().DebugString()),
               frame);
  return false;
}

void Worker::FireSwitch(Frame* frame, const Op& op, Value* inputs) {
  bool side = false;
  const bool is_valid = ReadPredicate(frame, inputs[1], &side);
  inputs[1].Release();
  if (!is_valid) return inputs[0].Release();
  DeliverWholeOp(frame, op);
  DeliverPort(frame, &frame->region->ports[op.port + side], inputs[0].Take());
}

// From here on data that reaches one of its gates passes at once. What waits there is taken out before any of
// it moves on, as it may move to the slot of another gate.
inline void Worker::FireBranch(Frame* frame, const Op& op, Value* inputs) {
  bool side = false;
  const bool is_valid = ReadPredicate(frame, inputs[0], &side);
  inputs[0].Release();
  if (!is_valid) return;
  const Region& region = *frame->region;
  frame->pending()[&op - region.ops.data()] = static_cast<uint16_t>(1 + side);
  opened_.clear();
  for (uint32_t i = op.index; i < op.gates_end; ++i) {
    Value& data = frame->values()[region.ops[region.gates[i]].slot];
    if (!data.is_empty()) opened_.emplace_back(region.gates[i], data.Take());
  }
  const DeathList& dead = region.port_deaths[op.port + !side];
  if (dead.begin != dead.end) Kill(frame, dead);
  for (const auto& [index, data] : opened_) {
    const Op& gate = region.ops[index];
    DeliverWholeOp(frame, gate);
    DeliverPort(frame, &region.ports[gate.port + side], data);
  }
  Value predicate = Value::Scalar(0);
  predicate.boolean = side;
  DeliverWholeOp(frame, op);
  DeliverPort(frame, &region.ports[op.port + side], predicate);
}

void Worker::FireSwitchN(Frame* frame, const Op& op, Value* inputs) {
  const tensorflow::Tensor index = TensorFromValue(inputs[1], tensorflow::DT_INT32);
  inputs[1].Release();
  if (index.dims() != 0 || index.dtype() != tensorflow::DT_INT32) {
    inputs[0].Release();
    budget_ = 0;
    return run_->FailAt(
        InvalidArgument("The branch index of a case in '", frame->region->name, "' must be a scalar int32"), frame);
  }
  // Out of range means the last branch, as for TensorFlow's kernel.
  int32_t side = index.scalar<int32_t>()();
  if (side < 0 || side >= op.num_ports) side = op.num_ports - 1;
  for (int32_t i = 0; i < op.num_ports; ++i) {
    if (i != side) Kill(frame, frame->region->port_deaths[op.port + i]);
  }
  DeliverPort(frame, &frame->region->ports[op.port + side], inputs[0].Take());
  DeliverWholeOp(frame, op);
}

void Worker::FireMerge(Frame* frame, const Op& op) {
  Value& slot = frame->values()[op.slot];
  const uint32_t position = slot.position;
  const Value value = slot;
  // Marks the merge as decided: a later input finds the slot taken.
  slot = Value::Dead();
  Value index = Value::Scalar(0);
  index.int32 = static_cast<int32_t>(position);
  DeliverPort(frame, &frame->region->ports[op.port + 1], index);
  DeliverPort(frame, &frame->region->ports[op.port], value);
  DeliverWholeOp(frame, op);
}

// Out of line: recursions without gradients should not pay for these in Fire().
ABSL_ATTRIBUTE_NOINLINE void Worker::FireRetain(Frame* frame, const Op& op, Value* inputs) {
  const tensorflow::DataTypeVector& types = program_.records[op.index].types;
  Record* record = Record::New(op.num_inputs);
  for (uint32_t i = 0; i < op.num_inputs; ++i) record->Set(i, inputs[i].Take(), types[i]);
  DeliverPort(frame, &frame->region->ports[op.port], Value::Own(record));
  DeliverWholeOp(frame, op);
}

// The last to read a record gets its values as they are: memory shrinks while a gradient unwinds, and
// kernels find buffers that they may reuse.
ABSL_ATTRIBUTE_NOINLINE void Worker::FireRecall(Frame* frame, const Op& op, Value* inputs) {
  Value input = inputs[0].Take();
  const RecordType& type = program_.records[op.index];
  Record* record = nullptr;
  const absl::Status status = FindRecord(input, type, &record);
  if (ABSL_PREDICT_FALSE(!status.ok())) {
    input.Release();
    budget_ = 0;
    return run_->FailAt(InvalidArgument(status.message(), "\n\t [[{{node ", type.name, "}}]]"), frame);
  }
  const bool is_last = record->IsUnshared() && (input.kind == Value::Kind::kRecord ||
                                                (input.kind == Value::Kind::kTensor && input.tensor->RefCountIsOne()));
  const Port* ports = &frame->region->ports[op.port];
  for (uint32_t i = 0; i < op.num_ports; ++i) {
    DeliverPort(frame, ports + i, is_last ? record->Take(i) : record->Get(i).Copy());
  }
  input.Release();
  DeliverWholeOp(frame, op);
}

// --- Frames ---------------------------------------------------------------------------------------

inline Frame* Worker::NewFrame(const Region& region, Frame* parent, uint32_t site_op, uint32_t depth) {
  Frame* frame = pool_.New(region);
  frame->parent = parent;
  frame->site_op = site_op;
  frame->owner = this;
  frame->live = 1;  // for whoever opens it, until it is started
  frame->depth = depth;
  frame->missing = 0;
  return frame;
}

// Fires what waits for nothing but the frame itself.
inline void Worker::StartFrame(Frame* frame) {
  const Region& region = *frame->region;
  if (region.trigger != kNone) DeliverControls(frame, region.ports[region.ops[region.trigger].port]);
  for (uint32_t op : region.sources) Push(frame, op);
}

void Worker::OpenRoot(std::vector<Value> arguments) {
  Frame* root = NewFrame(program_.regions[0], nullptr, kNone, 0);
  for (uint32_t i = root->region->num_firing; i < root->region->ops.size(); ++i) {
    const Op& op = root->region->ops[i];
    if (op.kind == OpKind::kArgument) DeliverPort(root, &root->region->ports[op.port], arguments[op.index].Take());
  }
  for (Value& unread : arguments) unread.Release();
  StartFrame(root);
  Unref(root);
}

bool Worker::CheckDepth(const Frame* caller, const Site& site) {
  const bool is_too_deep = caller->depth >= program_.options.max_depth;
  const bool is_too_large = run_->frame_bytes.load(std::memory_order_relaxed) > run_->max_frame_bytes;
  if (ABSL_PREDICT_TRUE(!is_too_deep && !is_too_large)) return true;
  budget_ = 0;
  const std::string limit = is_too_deep ? absl::StrCat("the limit is ", program_.options.max_depth)
                                        : absl::StrCat("where its frames take ", kDefaultMaxFrameBytes >> 20,
                                                       " MiB, the limit unless max_depth is above ", kDefaultMaxDepth);
  run_->FailAt(
      absl::ResourceExhaustedError(absl::StrCat(
          "Recursion too deep: call of '", site.callee_name, "' would be at depth ", caller->depth + 1, ", ", limit,
          "; raise it by the optimizer's parameter max_depth, as in session_config(max_depth=...)\n\t [[{{node ",
          site.name, "}}]]")),
      caller);
  return false;
}

// All at once, before any is delivered: a function may return one at once, to where the others lay.
inline const Value* Worker::TakeArguments(Frame* caller, const Op& op) {
  Value* slots = caller->values() + op.slot;
  for (uint32_t i = 0; i < op.num_inputs; ++i) {
    inputs_[i] = slots[i];
    slots[i] = Value::Empty();
  }
  return inputs_.data();
}

// Whether the call is dead with these arguments dead, of all that it waits for.
static bool IsDeadCall(const Op& op, const Site& site, const std::vector<uint32_t>& dead) {
  if (!site.waits_to_open) return dead.size() == op.num_tokens;
  return std::find(dead.begin(), dead.end(), op.num_inputs - 1u) != dead.end();
}

// Opens the callee's frame with the arguments that are there: in the caller's slots, or `given` along
// with a call from another worker. The call's count in the caller's `live` becomes the child's.
void Worker::OpenSite(Frame* caller, uint32_t index, const std::vector<Value>* given) {
  const Op& op = caller->region->ops[index];
  const Site& site = program_.sites[op.index];
  std::vector<uint32_t> dead;  // none in a call from another worker
  if (const OddSite* odd = given != nullptr ? nullptr : FindOddSite(caller, index); odd != nullptr) dead = odd->dead;
  if (ABSL_PREDICT_FALSE(!dead.empty()) && IsDeadCall(op, site, dead)) {
    odd_sites_.erase({caller, index});
    // The slot of a dead argument may be another operator's: nothing of this call was ever in it.
    for (uint32_t i = 0; i < op.num_inputs; ++i) {
      if (std::find(dead.begin(), dead.end(), i) == dead.end()) caller->values()[op.slot + i].Release();
    }
    Kill(caller, caller->region->port_deaths[op.port + op.num_ports]);
    return Unref(caller);
  }
  if (!CheckDepth(caller, site)) {
    if (given == nullptr) return;
    for (Value value : *given) value.Release();
    return;
  }
  const Region& callee = *site.callee;
  Frame* child = NewFrame(callee, caller, index, caller->depth + 1);
  if (ABSL_PREDICT_FALSE(callee.tag_slot != kNone)) SetTag(child, ChildTag(TagOf(caller), site.call_id));
  const Value* arguments = given != nullptr ? given->data() : TakeArguments(caller, op);
  const uint32_t missing = given != nullptr ? 0 : caller->pending()[index];
  if (ABSL_PREDICT_FALSE(missing > 0)) {
    child->missing = missing;
    ++child->live;
    MakeOddSite(caller, index).child = child;
  } else if (ABSL_PREDICT_FALSE(!dead.empty())) {
    odd_sites_.erase({caller, index});
  }
  for (uint32_t i = 0; i < op.num_inputs; ++i) {
    Value value = arguments[i];
    if (ABSL_PREDICT_FALSE(value.is_empty())) {
      if (std::find(dead.begin(), dead.end(), i) == dead.end()) continue;
      value = Value::Dead();
    }
    DeliverEntry(child, i < callee.entries.size() ? callee.entries[i] : kNone, value);
  }
  if (ABSL_PREDICT_FALSE(site.opened_port != kNone)) {
    Value opened = Value::Scalar(0);
    opened.boolean = true;
    DeliverResult(caller, index, site.opened_port, opened);
  }
  StartFrame(child);
  Unref(child);
}

void Worker::LinkPartial(Frame* frame) {
  frame->partial_position = static_cast<uint32_t>(partial_.size());
  partial_.push_back(frame);
  ++frame->live;
}

void Worker::UnlinkPartial(Frame* frame) {
  partial_[frame->partial_position] = nullptr;
  ++partial_gaps_;
  for (; !partial_.empty() && partial_.back() == nullptr; --partial_gaps_) partial_.pop_back();
  if (ABSL_PREDICT_FALSE(partial_gaps_ > kMostPartialGaps && partial_gaps_ > partial_.size() / 2)) ClosePartialGaps();
  --frame->live;  // not the last: the caller holds another
}

void Worker::ClosePartialGaps() {
  partial_.erase(std::remove(partial_.begin(), partial_.end(), nullptr), partial_.end());
  for (uint32_t i = 0; i < partial_.size(); ++i) partial_[i]->partial_position = i;
  partial_gaps_ = 0;
}

// Nothing else moves: opens this frame's calls that have only some of their arguments.
void Worker::OpenPartialSites(Frame* frame) {
  ++frame->live;
  UnlinkPartial(frame);
  frame->partial_sites = 0;
  const Region& region = *frame->region;
  for (uint32_t i = 0; i < region.num_firing; ++i) {
    const Op& op = region.ops[i];
    if (op.kind != OpKind::kSite || op.num_tokens < 2) continue;
    const uint32_t pending = frame->pending()[i];
    const OddSite* odd = FindOddSite(frame, i);
    const bool is_open = odd != nullptr && odd->child != nullptr;
    const size_t dead = odd == nullptr ? 0 : odd->dead.size();
    const bool may_open = program_.sites[op.index].waits_to_open ? IsOpened(frame, op) : pending + dead < op.num_tokens;
    if (is_open || pending == 0 || !may_open) continue;
    ++frame->live;
    OpenSite(frame, i, nullptr);
  }
  Unref(frame);
}

inline FrameTag Worker::TagOf(Frame* frame) const {
  const uint32_t slot = frame->region->tag_slot;
  if (ABSL_PREDICT_TRUE(slot == kNone)) return {};
  return {frame->values()[slot].bits, frame->values()[slot + 1].int64};
}

void Worker::SetTag(Frame* frame, const FrameTag& tag) {
  Value* slots = frame->values() + frame->region->tag_slot;
  slots[0] = Value::Scalar(tag.id);
  slots[1] = Value::Scalar(static_cast<uint64_t>(tag.iteration));
}

Frame* Worker::NewIteration(const Loop& loop, Frame* parent, uint32_t iteration) {
  ++parent->live;
  Frame* frame = NewFrame(*loop.body, parent, kNone, parent->depth);
  frame->iteration = iteration;
  if (ABSL_PREDICT_FALSE(loop.body->tag_slot != kNone)) {
    const auto tag = loop.in_function ? &ChildTag : &MainLoopTag;
    SetTag(frame, tag(TagOf(parent), loop.key, iteration));
  }
  const Value* enters = parent->values() + loop.parent->ops[loop.start_op].slot;
  for (const LoopDelivery& constant : loop.constants) {
    const Value& value = enters[constant.slot];
    DeliverEntry(frame, constant.entry,
                 value.kind == Value::Kind::kTensor ? Value::Borrow(value.tensor) : value.Copy());
  }
  --budget_;
  return frame;
}

void Worker::FireLoopStart(Frame* frame, const Op& op) {
  const Loop& loop = program_.loops[op.index];
  Value* enters = frame->values() + op.slot;
  if (ABSL_PREDICT_FALSE(op.takes_dead)) {
    // The loop is in a branch that was not taken: what it would have sent is sent as dead, once.
    const bool is_dead = std::any_of(enters, enters + op.num_inputs, [](const Value& v) { return v.is_dead(); });
    if (is_dead) Kill(frame, frame->region->port_deaths[op.port + op.num_ports]);
  }
  Frame* first = NewIteration(loop, frame, 0);
  for (const LoopDelivery& start : loop.starts) {
    const Value& value = enters[start.slot];
    DeliverEntry(first, start.entry, value.Copy());
    if (start.index_entry != kNone) DeliverEntry(first, start.index_entry, value.is_dead() ? value : Value::Scalar(0));
  }
  for (const LoopDelivery& start : loop.starts) enters[start.slot].Release();
  StartFrame(first);
  Unref(first);
}

void Worker::FireLoopNext(Frame* frame, const Op& op) {
  const Loop& loop = program_.loops[op.index];
  Frame* next = NewIteration(loop, frame->parent, frame->iteration + 1);
  Value* values = frame->values() + op.slot;
  Value one = Value::Scalar(0);
  one.int32 = 1;  // merges read their NextIteration, which is input 1
  for (const LoopDelivery& delivery : loop.nexts) {
    Value& value = values[delivery.slot];
    DeliverEntry(next, delivery.entry, (delivery.is_last ? value.Take() : value.Copy()).Escape());
    if (delivery.index_entry != kNone) DeliverEntry(next, delivery.index_entry, one);
  }
  StartFrame(next);
  Unref(next);
}

// Ends frames from `frame` upwards as far as nothing in them is left.
inline void Worker::Unref(Frame* frame) {
  while (--frame->live == 0) {
    Frame* parent = frame->parent;
    if (ABSL_PREDICT_FALSE(frame->has_odd_sites)) ForgetOddSites(frame);
    pool_.Delete(frame);
    if (parent == nullptr) return;
    if (ABSL_PREDICT_FALSE(parent->owner != this)) {
      return parent->owner->Post(Message(Message::Kind::kChildEnded, parent));
    }
    frame = parent;
  }
}

// --- Deaths ---------------------------------------------------------------------------------------

void Worker::Kill(Frame* frame, const DeathList& list) {
  if (list.begin == list.end) return;
  ++frame->live;  // what is learned on the way here may end everything else in the frame
  deaths_.emplace_back(frame, list);
  if (killing_) return;  // the loop below, further up the stack, will come to it
  killing_ = true;
  while (!deaths_.empty()) {
    const auto [where, events] = deaths_.back();
    deaths_.pop_back();
    for (uint32_t i = events.begin; i < events.end; ++i) Learn(where, where->region->deaths[i]);
    Unref(where);
  }
  killing_ = false;
}

void Worker::Learn(Frame* frame, const DeathEvent& event) {
  const Op& op = frame->region->ops[event.op];
  switch (event.kind) {
    case DeathEvent::Kind::kUnion:
      return MarkUnion(frame, event.op, event.index);
    case DeathEvent::Kind::kMerge: {
      if (op.passes_on) {
        uint16_t& state = frame->pending()[event.op];
        if ((state & kMergeDecided) != 0) return;  // it has its value
        state |= static_cast<uint16_t>(1 << event.index);
        if (state == (1 << op.num_inputs) - 1) Kill(frame, frame->region->port_deaths[op.port + op.num_ports]);
        return;
      }
      Value* masks = frame->values() + op.slot;
      if (!masks[0].is_empty()) return;
      masks[event.index / 64].bits |= uint64_t{1} << (event.index % 64);
      uint32_t dead = 0;
      for (uint32_t i = 0; i < op.num_inputs; ++i) dead += (masks[i / 64].bits >> (i % 64)) & 1;
      // Once is enough, but twice is harmless: whoever learns of a death ignores the second time.
      if (dead == op.num_inputs) Kill(frame, frame->region->port_deaths[op.port + op.num_ports]);
      return;
    }
    case DeathEvent::Kind::kSiteArgument: {
      if (!LearnDeadArgument(frame, event)) return;
      return DeliverSiteArgument(frame, {event.op, op.slot + event.index, event.index, EdgeKind::kSiteArgument},
                                 Value::Dead());
    }
    case DeathEvent::Kind::kSend:
    case DeathEvent::Kind::kLoopStart: {
      Value& slot = frame->values()[op.slot + event.index];
      if (!slot.is_empty() || frame->pending()[event.op] == 0) return;
      slot = Value::Dead();
      return CountDown(frame, event.op);
    }
    case DeathEvent::Kind::kResult:
      return DeliverResult(frame->parent, frame->site_op, event.index, Value::Dead());
  }
}

}  // namespace tensorflow_recursion
