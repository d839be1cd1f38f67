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

// How many pieces of work an ordinary kernel counts as: it takes as long as a few calls. An expensive one takes as long
// as all that is done between two looks, kPollInterval.
constexpr int kKernelWeight = 8;

// A worker that has more operators to fire than this does not hold a kernel, because it would take longer to fire them
// all than to wake a thread.
constexpr size_t kMostBesideHeld = 8;

}  // namespace

void KernelLauncher::Fire(Frame* frame, OpId index, const Op& op, Value* inputs) {
  const KernelNode& node = context_->program.KernelOf(op);
  RunState* const run = context_->run;
  if (ABSL_PREDICT_FALSE(node.kept_results != kNone) && DeliverKept(frame, op, inputs, node)) return;
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
    return Start(Depart(frame, index, inputs, KernelInFlight::Way::kAsynchronous));
  }
  if (run->environment.spreads_main_graph && frame->region->is_in_main_graph()) {
    return FireInMainGraph(frame, index, op, inputs, node);
  }
  const bool is_expensive = cost == KernelRunner::Cost::kExpensive;
  if (is_expensive && !queue_->empty() && run->BeginOffload()) {
    return Send(Depart(frame, index, inputs, KernelInFlight::Way::kOffloaded));
  }
  context_->Spend(is_expensive ? kPollInterval : kKernelWeight);
  RunHere(frame, op, inputs, node);
}

// Delivers what another frame of the recursion has computed and kept. Returns false if none has yet. Two frames may
// compute the same at once. In a traced step every operator runs, so that it is seen.
bool KernelLauncher::DeliverKept(Frame* frame, const Op& op, Value* inputs, const KernelNode& node) {
  const Invariants& shared = frame->invariants();
  if (context_->traces || !shared.HasResults(node.kept_results)) return false;
  for (uint32_t i = 0; i < op.num_inputs; ++i) inputs[i].Release();
  MakeRoomForOutputs();
  for (uint32_t i = 0; i < op.num_ports; ++i) outputs_[i] = shared.GetResult(node.kept_results + i);
  Deliver(frame, op, node, outputs_.data());
  return true;
}

void KernelLauncher::FireInMainGraph(Frame* frame, OpId index, const Op& op, Value* inputs, const KernelNode& node) {
  if (queue_->empty() && flights_.count() == 0) {
    context_->Spend(kPollInterval);
    context_->restarts_slice = true;
    return RunHere(frame, op, inputs, node);
  }
  const bool holds = !has_held() && !queue_->has_calls() && queue_->num_operators() <= kMostBesideHeld;
  const KernelFlight flight = Depart(frame, index, inputs, KernelInFlight::Way::kSpread);
  holds ? Hold(flight) : Send(WithChain(flight));
}

void KernelLauncher::RunHere(Frame* frame, const Op& op, Value* inputs, const KernelNode& node) {
  RunState* const run = context_->run;
  MakeRoomForOutputs();
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

void KernelLauncher::MakeRoomForOutputs() {
  if (outputs_.size() < context_->run->max_outputs) outputs_.resize(context_->run->max_outputs, Value::Empty());
}

// Lets the call wait in a wave, if it can share one, and returns whether it does. A wave that is full then runs at
// once.
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

// Makes a kernel that is to run beside the worker, and moves the inputs into it.
std::unique_ptr<KernelInFlight> KernelLauncher::Board(const Frame& frame, OpId index, Value* inputs,
                                                      KernelInFlight::Way way) {
  std::unique_ptr<KernelInFlight> kernel = flights_.NewKernel();
  const Op& op = frame.region->ops[index];
  kernel->way = way;
  kernel->op = index;
  kernel->node = &context_->program.KernelOf(op);
  kernel->inputs.reserve(op.num_inputs);
  for (uint32_t i = 0; i < op.num_inputs; ++i) kernel->inputs.push_back(inputs[i].Take());
  kernel->outputs.resize(op.num_ports, Value::Empty());
  const bool is_dead = op.kind == OpKind::kSend && kernel->inputs[0].is_dead();
  kernel->call = KernelCall{kernel->inputs.data(), kernel->outputs.data(), frame.tag(), /*worker=*/0, is_dead};
  context_->run->frame_bytes.fetch_add(kernel->node->in_flight_bytes, std::memory_order_relaxed);
  return kernel;
}

KernelFlight KernelLauncher::Depart(Frame* frame, OpId index, Value* inputs, KernelInFlight::Way way) {
  ++frame->live;
  flights_.Begin(way);
  context_->run->BeginActivity();
  return {context_->run, frame, Board(*frame, index, inputs, way).release()};
}

// Returns the edge to the operator that waits for nothing but the only output of operator `index`, which is about to
// run. Returns nullptr if there is none, or if that operator's kernel cannot run on the same thread.
const Edge* KernelLauncher::OnlyEdge(const Frame& frame, OpId index) const {
  const Region& region = *frame.region;
  const Op& op = region.ops[index];
  if (op.num_ports != 1 || op.has_controls || op.may_be_dead) return nullptr;
  const Port& port = region.ports[op.port];
  if (port.end - port.begin != 1 || port.controls != port.end) return nullptr;
  const Edge& edge = region.edges[port.begin];
  const bool waits_only_for_this =
      edge.kind == EdgeKind::kOnly || (edge.kind == EdgeKind::kData && frame.pending()[edge.op] == 1);
  const Op& reader = region.ops[edge.op];
  if (!waits_only_for_this || reader.kind != OpKind::kKernel) return nullptr;
  switch (context_->run->environment.runner->CostOf(context_->program.KernelOf(reader))) {
    case KernelRunner::Cost::kCheap:
    case KernelRunner::Cost::kModerate:
    case KernelRunner::Cost::kExpensive:
      return &edge;
    case KernelRunner::Cost::kShared:
    case KernelRunner::Cost::kAsynchronous:
      break;
  }
  return nullptr;
}

// Adds the kernels to the flight that become ready one by one as those before them run. All that they read besides has
// come already.
KernelFlight KernelLauncher::WithChain(const KernelFlight& flight) {
  Frame* const frame = flight.frame;
  KernelInFlight* kernel = flight.kernel;
  if (kernel->next != nullptr || ABSL_PREDICT_FALSE(context_->traces)) return flight;
  for (int count = 1; count < kLongestFlight; ++count) {
    const Edge* const edge = OnlyEdge(*frame, kernel->op);
    if (edge == nullptr) break;
    Value to_come = Value::Empty();
    Value* const inputs = inputs_->Of(frame, frame->region->ops[edge->op], &to_come);
    kernel->next = Board(*frame, edge->op, inputs, kernel->way);
    kernel = kernel->next.get();
    kernel->arrival = edge->index;
    kernel->inputs[edge->index].Release();  // a number that another operator has left in the slot it read it from
  }
  return flight;
}

std::optional<KernelFlight> KernelLauncher::TakeHeld() {
  std::optional<KernelFlight> held = std::exchange(held_, std::nullopt);
  if (held.has_value()) held = WithChain(*held);
  return held;
}

void KernelLauncher::SendHeld() {
  if (ABSL_PREDICT_FALSE(has_held())) Send(*TakeHeld());
}

bool KernelLauncher::RunHeld() {
  if (!held_.has_value() || flights_.count() > 1) return false;
  const KernelFlight flight = *std::exchange(held_, std::nullopt);
  context_->Spend(kPollInterval);
  context_->restarts_slice = true;
  Message message = Fly(flight);
  // The time of this thread is counted already, so that of the kernels must not be counted again.
  for (const KernelInFlight* kernel = message.kernel.get(); kernel != nullptr; kernel = kernel->next.get()) {
    if (context_->profile != nullptr) context_->profile->NoteBusy(-kernel->nanoseconds);
  }
  Land(&message);
  flight.run->EndActivity();  // This is not the last one, because the worker's own goes on.
  return true;
}

void KernelLauncher::Land(Message* message) {
  Frame* const frame = message->frame;
  std::unique_ptr<KernelInFlight> kernel = std::move(message->kernel);
  flights_.End(kernel->way);
  while (true) {
    NoteEnd(*frame, *kernel);
    if (context_->run->failed()) return;
    if (!kernel->status.ok()) return context_->run->FailAt(kernel->status, frame);
    if (!kernel->is_handed_on) break;
    kernel = flights_.Recycle(std::move(kernel));
  }
  DeliverOutputs(frame, frame->region->ops[kernel->op], *kernel->node, kernel->outputs.data());
  frames_->Unref(frame);
  flights_.Recycle(std::move(kernel));
}

void KernelLauncher::NoteEnd(const Frame& frame, const KernelInFlight& kernel) {
  context_->run->frame_bytes.fetch_sub(kernel.node->in_flight_bytes, std::memory_order_relaxed);
  if (ABSL_PREDICT_TRUE(context_->profile == nullptr)) return;
  context_->profile->NoteBusy(kernel.nanoseconds);
  context_->profile->NoteKernel(*kernel.node, *frame.region, kernel.nanoseconds);
}

// Takes over what a kernel has made.
void KernelLauncher::DeliverOutputs(Frame* frame, const Op& op, const KernelNode& node, Value* outputs) {
  if (ABSL_PREDICT_FALSE(node.kept_results != kNone)) {
    frame->mutable_invariants()->KeepResults(node.kept_results, outputs, op.num_ports);
  }
  Deliver(frame, op, node, outputs);
}

void KernelLauncher::Deliver(Frame* frame, const Op& op, const KernelNode& node, Value* outputs) {
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
