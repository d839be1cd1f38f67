// What a worker does with an operator that is ready: fires it itself, or has its kernel run.
// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "cc/base/status.h"
#include "cc/executor/run.h"
#include "cc/executor/run_log.h"
#include "cc/executor/worker.h"
#include "cc/executor/worker_inline.h"

namespace tensorflow_recursion {
namespace {

// An ordinary kernel takes as long as a few calls, an expensive one as long as a poll interval.
constexpr int kKernelWeight = 8;

}  // namespace

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

void Worker::Fire(Item* item) {
  Frame* const frame = item->frame;
  const uint32_t index = item->op;
  const Op& op = frame->region->ops[index];
  Value* inputs = InputsOf(item, op);
  switch (op.kind) {
    case OpKind::kScalar: {
      Value result;
      if (ABSL_PREDICT_TRUE(!traces_) && ABSL_PREDICT_TRUE(op.scalar(inputs, &result))) {
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
    case OpKind::kFrameStart:
      break;  // never queued
  }
}

// --- Kernels --------------------------------------------------------------------------------------

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
  if (ABSL_PREDICT_FALSE(traces_)) LogKernel(program_, *frame, node, outputs);
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

// --- Branches and merges --------------------------------------------------------------------------

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
void Worker::FireBranch(Frame* frame, const Op& op, Value* inputs) {
  bool side = false;
  const bool is_valid = ReadPredicate(frame, inputs[0], &side);
  inputs[0].Release();
  if (!is_valid) return;
  const Region& region = *frame->region;
  frame->pending()[&op - region.ops.data()] = static_cast<uint16_t>(1 + side);
  released_gates_.clear();
  for (uint32_t i = op.index; i < op.gates_end; ++i) {
    Value& data = frame->values()[region.ops[region.gates[i]].slot];
    if (!data.is_empty()) released_gates_.emplace_back(region.gates[i], data.Take());
  }
  const DeathList& dead = region.port_deaths[op.port + !side];
  if (dead.begin != dead.end) Kill(frame, dead);
  for (const auto& [index, data] : released_gates_) {
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

// --- Records --------------------------------------------------------------------------------------

// Out of line: recursions without gradients should not pay for these in Fire().
ABSL_ATTRIBUTE_NOINLINE void Worker::FireRetain(Frame* frame, const Op& op, Value* inputs) {
  const tensorflow::DataTypeVector& types = program_.records[op.index].types;
  if (ABSL_PREDICT_FALSE(traces_)) LogOperator(program_, *frame, program_.records[op.index].name);
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
  if (ABSL_PREDICT_FALSE(traces_)) LogOperator(program_, *frame, type.name);
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

}  // namespace tensorflow_recursion
