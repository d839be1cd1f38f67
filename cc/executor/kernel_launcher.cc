// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/kernel_launcher.h"

#include <atomic>
#include <memory>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "cc/executor/run_log.h"

namespace tensorflow_recursion {
namespace {

// An ordinary kernel takes as long as a few calls, an expensive one as long as a poll interval.
constexpr int kKernelWeight = 8;

// With more to do the worker doesn't hold a kernel back: to do it all takes longer than to wake a thread.
constexpr size_t kMostBesideHeld = 8;

Message EndOf(const KernelFlight& flight, absl::Status status) {
  flight.kernel->status = std::move(status);
  Message message(Message::Kind::kKernelDone, flight.frame, flight.op);
  message.kernel.reset(flight.kernel);
  return message;
}

// Runs a kernel that isn't asynchronous, and notes how long it takes if somebody wants to know.
absl::Status RunNow(const KernelFlight& flight) {
  const bool profiles = flight.run->environment.profiles;
  const int64_t start = profiles ? ProfileClock() : 0;
  absl::Status ended;
  flight.run->environment.runner->RunAsync(*flight.node, &flight.kernel->call,
                                           [&ended](absl::Status status) { ended = std::move(status); });
  if (ABSL_PREDICT_FALSE(profiles)) flight.kernel->nanoseconds = ProfileClock() - start;
  return ended;
}

// An asynchronous kernel may end on a thread that must not work: its owner is woken elsewhere.
void Start(const KernelFlight& flight) {
  flight.run->environment.runner->RunAsync(*flight.node, &flight.kernel->call, [flight](absl::Status status) {
    RunState* const run = flight.run;
    flight.frame->owner->Post(EndOf(flight, std::move(status)));
    run->EndActivity();  // after Post, which has begun the owner's
  });
}

// To another thread, which goes on as the worker if that sleeps in the end.
void Send(const KernelFlight& flight) {
  flight.run->environment.schedule([flight] {
    Inbox* const owner = flight.frame->owner;
    if (RunBeside(flight)) owner->Wake();
  });
}

}  // namespace

bool RunBeside(const KernelFlight& flight) {
  RunState* const run = flight.run;
  Inbox* const owner = flight.frame->owner;
  absl::Status status = run->failed() ? absl::OkStatus() : RunNow(flight);  // nobody reads it after an error
  if (flight.kernel->way == KernelInFlight::Way::kOffloaded) run->EndOffload();
  if (owner->PostHere(EndOf(flight, std::move(status)))) return true;  // the kernel's activity is now the owner's
  run->EndActivity();
  return false;
}

void KernelLauncher::Fire(Frame* frame, OpId index, const Op& op, Value* inputs) {
  const KernelNode& node = context_->program.kernels[op.index];
  RunState* const run = context_->run;
  const KernelRunner::Cost cost = run->environment.runner->CostOf(node);
  if (ABSL_PREDICT_TRUE(cost == KernelRunner::Cost::kCheap)) {
    context_->Spend(kKernelWeight);
    return RunHere(frame, op, inputs, node);
  }
  if (cost == KernelRunner::Cost::kShared) {
    context_->Spend(kKernelWeight);
    if (!Waits(frame, index, op, inputs, node)) RunHere(frame, op, inputs, node);
    return;
  }
  if (cost == KernelRunner::Cost::kAsynchronous) {
    return Start(Depart(frame, index, op, inputs, KernelInFlight::Way::kAsynchronous));
  }
  if (run->environment.spreads_main_graph && frame->region->is_in_main_graph()) {
    return FireInMainGraph(frame, index, op, inputs, node);
  }
  const bool is_expensive = cost == KernelRunner::Cost::kExpensive;
  if (is_expensive && !queue_->empty() && run->BeginOffload()) {
    return Send(Depart(frame, index, op, inputs, KernelInFlight::Way::kOffloaded));
  }
  context_->Spend(is_expensive ? kPollInterval : kKernelWeight);
  RunHere(frame, op, inputs, node);
}

void KernelLauncher::FireInMainGraph(Frame* frame, OpId index, const Op& op, Value* inputs, const KernelNode& node) {
  if (queue_->empty() && !has_any_in_flight()) {
    context_->Spend(kPollInterval);
    context_->restarts_slice = true;
    return RunHere(frame, op, inputs, node);
  }
  const bool holds = !has_held() && !queue_->has_calls() && queue_->num_operators() <= kMostBesideHeld;
  const KernelFlight flight = Depart(frame, index, op, inputs, KernelInFlight::Way::kSpread);
  holds ? Hold(flight) : Send(flight);
}

void KernelLauncher::RunHere(Frame* frame, const Op& op, Value* inputs, const KernelNode& node) {
  RunState* const run = context_->run;
  if (outputs_.size() < run->max_outputs) outputs_.resize(run->max_outputs, Value::Empty());
  KernelCall call{inputs, outputs_.data(), frame->tag(), context_->index, false};
  if (op.kind == OpKind::kSend) call.is_dead = inputs[0].is_dead();
  ProfileTimer timer(context_->profile.get());
  const absl::Status status = run->environment.runner->Run(node, absl::MakeSpan(&call, 1));
  if (ABSL_PREDICT_FALSE(timer.is_on())) timer.profile()->NoteKernel(node, *frame->region, timer.Lap());
  for (uint32_t i = 0; i < op.num_inputs; ++i) call.inputs[i].Release();
  if (ABSL_PREDICT_FALSE(timer.is_on())) timer.profile()->NoteRelease(timer.Lap());
  if (ABSL_PREDICT_FALSE(!status.ok())) {
    for (uint32_t i = 0; i < op.num_ports; ++i) outputs_[i].Release();
    return context_->FailAt(status, frame);
  }
  DeliverOutputs(frame, op, node, outputs_.data());
}

// A wave that this call fills up runs at once.
bool KernelLauncher::Waits(Frame* frame, OpId index, const Op& op, Value* inputs, const KernelNode& node) {
  const KernelRunner::Share share = context_->run->environment.runner->ShareOf(node, inputs);
  Wave* const wave = waves_->Add(node, share, frame, index, op, inputs);
  if (wave == nullptr) return false;
  if (wave->is_full()) RunWave(waves_->Take(wave));
  return true;
}

bool KernelLauncher::RunFullestWave() {
  if (waves_->empty()) return false;
  RunWave(waves_->Take(waves_->fullest()));
  return true;
}

void KernelLauncher::RunWave(Wave wave) {
  const bool is_done = wave.calls.size() > 1 && RunTogether(&wave);
  for (WaitingCall& call : wave.calls) {
    if (!is_done) RunHere(call.frame, call.frame->region->ops[call.op], call.inputs.data(), *wave.node);
    frames_->Unref(call.frame);
  }
  waves_->Recycle(std::move(wave));
}

bool KernelLauncher::RunTogether(Wave* wave) {
  const uint32_t num_ports = wave->calls[0].frame->region->ops[wave->calls[0].op].num_ports;
  absl::InlinedVector<KernelCall, KernelRunner::kFullWave> calls;
  absl::InlinedVector<Value, KernelRunner::kFullWave> outputs(wave->calls.size() * num_ports, Value::Empty());
  for (WaitingCall& call : wave->calls) {
    calls.push_back(
        {call.inputs.data(), &outputs[calls.size() * num_ports], call.frame->tag(), context_->index, false});
  }
  ProfileTimer timer(context_->profile.get());
  if (!context_->run->environment.runner->RunTogether(*wave->node, absl::MakeSpan(calls))) return false;
  const auto count = static_cast<int64_t>(calls.size());
  const int64_t each = ABSL_PREDICT_FALSE(timer.is_on()) ? timer.Lap() / count : 0;
  for (int64_t i = 0; i < count; ++i) {
    WaitingCall& call = wave->calls[i];
    const Op& op = call.frame->region->ops[call.op];
    if (ABSL_PREDICT_FALSE(timer.is_on())) timer.profile()->NoteKernel(*wave->node, *call.frame->region, each);
    for (uint32_t j = 0; j < op.num_inputs; ++j) call.inputs[j].Release();
    DeliverOutputs(call.frame, op, *wave->node, &outputs[i * num_ports]);
  }
  return true;
}

// Moves the inputs into a KernelInFlight.
std::unique_ptr<KernelInFlight> KernelLauncher::Board(const Op& op, Value* inputs, const FrameTag& tag) {
  std::unique_ptr<KernelInFlight> kernel;
  if (spare_.empty()) {
    kernel = std::make_unique<KernelInFlight>();
  } else {
    kernel = std::move(spare_.back());
    spare_.pop_back();
  }
  kernel->inputs.reserve(op.num_inputs);
  for (uint32_t i = 0; i < op.num_inputs; ++i) kernel->inputs.push_back(inputs[i].Take());
  kernel->outputs.resize(op.num_ports, Value::Empty());
  const bool is_dead = op.kind == OpKind::kSend && kernel->inputs[0].is_dead();
  kernel->call = KernelCall{kernel->inputs.data(), kernel->outputs.data(), tag, /*worker=*/0, is_dead};
  return kernel;
}

KernelFlight KernelLauncher::Depart(Frame* frame, OpId index, const Op& op, Value* inputs, KernelInFlight::Way way) {
  RunState* const run = context_->run;
  const KernelNode& node = context_->program.kernels[op.index];
  KernelInFlight* const kernel = Board(op, inputs, frame->tag()).release();
  kernel->way = way;
  ++frame->live;
  ++NumInFlight(way);
  run->BeginActivity();
  run->frame_bytes.fetch_add(node.in_flight_bytes, std::memory_order_relaxed);
  return {run, frame, index, &node, kernel};
}

void KernelLauncher::SendHeld() {
  if (ABSL_PREDICT_FALSE(held_.has_value())) Send(*TakeHeld());
}

bool KernelLauncher::RunHeld() {
  if (!held_.has_value() || num_in_flight_ + num_spread_ > 1) return false;
  const KernelFlight flight = *TakeHeld();
  context_->Spend(kPollInterval);
  context_->restarts_slice = true;
  Message message = EndOf(flight, context_->run->failed() ? absl::OkStatus() : RunNow(flight));
  // This thread is counted as busy anyway.
  if (context_->profile != nullptr) context_->profile->NoteBusy(-flight.kernel->nanoseconds);
  Land(&message);
  flight.run->EndActivity();  // not the last: the worker's own goes on
  return true;
}

void KernelLauncher::Land(Message* message) {
  Frame* const frame = message->frame;
  const Op& op = frame->region->ops[message->op];
  const KernelNode& node = context_->program.kernels[op.index];
  --NumInFlight(message->kernel->way);
  context_->run->frame_bytes.fetch_sub(node.in_flight_bytes, std::memory_order_relaxed);
  if (ABSL_PREDICT_FALSE(context_->profile != nullptr)) {
    context_->profile->NoteBusy(message->kernel->nanoseconds);
    context_->profile->NoteKernel(node, *frame->region, message->kernel->nanoseconds);
  }
  if (context_->run->failed()) return;
  if (!message->kernel->status.ok()) return context_->run->FailAt(message->kernel->status, frame);
  DeliverOutputs(frame, op, node, message->kernel->outputs.data());
  frames_->Unref(frame);
  if (spare_.size() == kMostSpare) return;
  message->kernel->Clear();
  spare_.push_back(std::move(message->kernel));
}

// Takes the outputs over.
void KernelLauncher::DeliverOutputs(Frame* frame, const Op& op, const KernelNode& node, Value* outputs) {
  if (ABSL_PREDICT_FALSE(context_->traces)) LogKernel(context_->program, *frame, node, outputs);
  bool any = op.num_ports == 0;
  for (uint32_t i = 0; i < op.num_ports; ++i) {
    if (ABSL_PREDICT_FALSE(outputs[i].is_empty())) {
      if (op.may_be_dead) {
        router_->Kill(frame, frame->region->port_deaths[op.port + i]);
        continue;
      }
      for (uint32_t j = i; j < op.num_ports; ++j) outputs[j].Release();
      return context_->FailAt(
          absl::InternalError(absl::StrCat("Missing output ", i, "\n\t [[{{node ", node.name, "}}]]")), frame);
    }
    any = true;
    router_->DeliverPort(frame, &frame->region->ports[op.port + i], outputs[i].Take());
  }
  if (ABSL_PREDICT_TRUE(any)) {
    router_->DeliverDone(frame, op);
  } else {
    router_->KillAll(frame, op);
  }
}

}  // namespace tensorflow_recursion
