// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/kernel_launcher.h"

#include <atomic>
#include <memory>
#include <utility>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "cc/executor/run_log.h"

namespace tensorflow_recursion {
namespace {

// An ordinary kernel takes as long as a few calls, an expensive one as long as a poll interval.
constexpr int kKernelWeight = 8;

// Moves the inputs into a KernelInFlight.
std::unique_ptr<KernelInFlight> Board(const Op& op, Value* inputs, const FrameTag& tag) {
  auto kernel = std::make_unique<KernelInFlight>();
  for (uint32_t i = 0; i < op.num_inputs; ++i) kernel->inputs.push_back(inputs[i].Take());
  kernel->outputs.resize(op.num_ports, Value::Empty());
  kernel->call.inputs = kernel->inputs.data();
  kernel->call.outputs = kernel->outputs.data();
  kernel->call.tag = tag;
  if (op.kind == OpKind::kSend) kernel->call.is_dead = kernel->inputs[0].is_dead();
  return kernel;
}

}  // namespace

void KernelLauncher::Fire(Frame* frame, OpId index, const Op& op, Value* inputs) {
  const KernelNode& node = context_->program.kernels[op.index];
  const KernelRunner::Cost cost = context_->run->environment.runner->CostOf(node);
  if (ABSL_PREDICT_FALSE(cost == KernelRunner::Cost::kAsynchronous)) {
    return Launch(frame, index, op, inputs, node, /*is_offloaded=*/false);
  }
  const bool is_expensive = cost == KernelRunner::Cost::kExpensive;
  if (ABSL_PREDICT_FALSE(is_expensive) && !queue_->empty() && context_->run->BeginOffload()) {
    return Launch(frame, index, op, inputs, node, /*is_offloaded=*/true);
  }
  context_->Spend(is_expensive ? kPollInterval : kKernelWeight);
  RunHere(frame, op, inputs, node);
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

void KernelLauncher::Launch(Frame* frame, OpId index, const Op& op, Value* inputs, const KernelNode& node,
                            bool is_offloaded) {
  RunState* const run = context_->run;
  KernelInFlight* const kernel = Board(op, inputs, frame->tag()).release();  // owned by `done`'s message in the end
  ++frame->live;
  ++num_in_flight_;
  run->BeginActivity();
  run->frame_bytes.fetch_add(node.in_flight_bytes, std::memory_order_relaxed);
  auto done = [run, owner = frame->owner, frame, index, kernel, is_offloaded](absl::Status status) {
    kernel->status = std::move(status);
    Message message(Message::Kind::kKernelDone, frame, index);
    message.kernel.reset(kernel);
    if (is_offloaded) run->EndOffload();
    owner->Post(std::move(message));
    run->EndActivity();  // after Post, which has begun the owner's
  };
  KernelRunner* const runner = run->environment.runner;
  if (!is_offloaded) return runner->RunAsync(node, &kernel->call, std::move(done));
  run->environment.schedule([run, runner, &node, kernel, done] {
    const int64_t start = run->environment.profiles ? ProfileClock() : 0;
    runner->RunAsync(node, &kernel->call, [run, kernel, done, start](absl::Status status) {
      if (ABSL_PREDICT_FALSE(run->environment.profiles)) kernel->nanoseconds = ProfileClock() - start;
      done(std::move(status));
    });
  });
}

void KernelLauncher::Land(Message* message) {
  Frame* const frame = message->frame;
  const Op& op = frame->region->ops[message->op];
  const KernelNode& node = context_->program.kernels[op.index];
  --num_in_flight_;
  context_->run->frame_bytes.fetch_sub(node.in_flight_bytes, std::memory_order_relaxed);
  if (ABSL_PREDICT_FALSE(context_->profile != nullptr)) {
    context_->profile->NoteBusy(message->kernel->nanoseconds);
    context_->profile->NoteKernel(node, *frame->region, message->kernel->nanoseconds);
  }
  if (context_->run->failed()) return;
  if (!message->kernel->status.ok()) return context_->run->FailAt(message->kernel->status, frame);
  DeliverOutputs(frame, op, node, message->kernel->outputs.data());
  frames_->Unref(frame);
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
