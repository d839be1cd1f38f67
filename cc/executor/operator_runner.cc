// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/operator_runner.h"

#include <cstdint>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "cc/base/status.h"
#include "cc/executor/run_log.h"
#include "cc/program/element_operators.h"
#include "cc/values/record.h"

namespace tensorflow_recursion {
namespace {

// What a table of inputs says without a slot: a constant, or an invariant of the frame's recursion.
inline Value KeptInput(const Frame& frame, const Value& entry) {
  return IsInvariantEntry(entry) ? frame.invariants().Get(entry.position) : entry;
}

}  // namespace

OperatorRunner::OperatorRunner(WorkerContext* context, ReadyQueue* queue, TokenRouter* router, KernelLauncher* kernels,
                               PieceRunner* pieces, LoopRunner* loops, ControlFlow* control_flow)
    : context_(context),
      queue_(queue),
      router_(router),
      kernels_(kernels),
      pieces_(pieces),
      loops_(loops),
      control_flow_(control_flow),
      inputs_(context->program.max_inputs, Value::Empty()) {}

void OperatorRunner::Fire(ReadyOperator* item) {
  Frame* const frame = item->frame;
  const OpId index = item->op;
  const Op& op = frame->region->ops[index];
  Value* const inputs = InputsOf(item, op);
  switch (op.kind) {
    case OpKind::kScalar:
      return FireScalar(frame, index, op, inputs);
    case OpKind::kKernel:
    case OpKind::kSend:
      return kernels_->Fire(frame, index, op, inputs);
    case OpKind::kPiece:
      return pieces_->Fire(frame, op, inputs);
    case OpKind::kPass:
      return FirePass(frame, op, inputs);
    case OpKind::kSwitch:
      return control_flow_->FireSwitch(frame, op, inputs);
    case OpKind::kBranch:
      return control_flow_->FireBranch(frame, op, inputs);
    case OpKind::kSwitchN:
      return control_flow_->FireSwitchN(frame, op, inputs);
    case OpKind::kMerge:
      return control_flow_->FireMerge(frame, op);
    case OpKind::kUnion:
      return router_->DeliverDone(frame, op);
    case OpKind::kLoopStart:
      return loops_->FireStart(frame, op);
    case OpKind::kLoopNext:
      return loops_->FireNext(frame, op);
    case OpKind::kRetval:
      return FireRetval(op, inputs);
    case OpKind::kRetain:
      return FireRetain(frame, op, inputs);
    case OpKind::kRecall:
      return FireRecall(frame, op, inputs);
    case OpKind::kCallSite:  // a call without tokens of its own: constant arguments in a region without conditions
      return queue_->PushCall(frame, index);
    case OpKind::kGate:
    case OpKind::kResult:
    case OpKind::kExit:
    case OpKind::kArgument:
    case OpKind::kEntry:
    case OpKind::kFrameStart:
      return;  // never queued
  }
}

// --- Inputs ---------------------------------------------------------------------------------------

// Where they lie side by side. The value that came along has to be read before anything is delivered.
inline Value* OperatorRunner::InputsOf(ReadyOperator* item, const Op& op) {
  switch (op.inputs) {
    case InputsIn::kSlots:
      return item->frame->values() + op.slot;
    case InputsIn::kArrival:
      return &item->value;
    case InputsIn::kTable:
      return GatherInputs(item->frame, op);
    case InputsIn::kTableAndArrival:
      break;
  }
  return GatherInputsWith(item, op);
}

inline Value* OperatorRunner::GatherInputs(Frame* frame, const Op& op) {
  const Value* table = frame->region->inputs.data() + op.slot;
  for (uint32_t i = 0; i < op.num_inputs; ++i) {
    inputs_[i] = table[i].is_empty() ? frame->values()[table[i].position].Take() : KeptInput(*frame, table[i]);
  }
  return inputs_.data();
}

inline Value* OperatorRunner::GatherInputsWith(ReadyOperator* item, const Op& op) {
  const Value* table = item->frame->region->inputs.data() + op.slot;
  Value* inputs = inputs_.data();
  for (uint32_t i = 0; i < op.num_inputs; ++i) inputs[i] = KeptInput(*item->frame, table[i]);
  if (op.only < op.num_inputs) item->value.CopyTo(&inputs[op.only]);
  return inputs;
}

// --- Values ---------------------------------------------------------------------------------------

inline void OperatorRunner::FireScalar(Frame* frame, OpId index, const Op& op, Value* inputs) {
  Value result;
  if (ABSL_PREDICT_FALSE(context_->traces) || ABSL_PREDICT_FALSE(!op.scalar(inputs, &result))) {
    if (ABSL_PREDICT_FALSE(op.reads_element)) return FireSlice(frame, index, op, inputs);
    return kernels_->Fire(frame, index, op, inputs);
  }
  if (ABSL_PREDICT_FALSE(inputs[0].owns())) inputs[0].Release();  // the vector that a number was read from
  router_->DeliverDone(frame, op);
  router_->DeliverPort(frame, &frame->region->ports[op.port], Value::Scalar(result.bits));
}

ABSL_ATTRIBUTE_NOINLINE void OperatorRunner::FireSlice(Frame* frame, OpId index, const Op& op, Value* inputs) {
  const KernelNode& node = context_->program.kernels[op.index];
  if (PackIndices(node.inputs[1], inputs)) return kernels_->Fire(frame, index, op, inputs);
  for (uint32_t i = 0; i < op.num_inputs; ++i) inputs[i].Release();
  context_->FailAt(IndexIsNoNumber(node.name), frame);
}

void OperatorRunner::FirePass(Frame* frame, const Op& op, Value* inputs) {
  const Port* ports = &frame->region->ports[op.port];
  for (uint32_t i = 0; i < op.num_ports; ++i) router_->DeliverPort(frame, ports + i, inputs[i].Take());
  router_->DeliverDone(frame, op);
}

inline void OperatorRunner::FireRetval(const Op& op, Value* inputs) {
  Value& retval = context_->run->retvals[op.index];
  retval.Release();
  retval = inputs[0].Take();
}

// --- Records --------------------------------------------------------------------------------------

// Out of line, as is the next: recursions without gradients should not pay for these in Fire().
ABSL_ATTRIBUTE_NOINLINE void OperatorRunner::FireRetain(Frame* frame, const Op& op, Value* inputs) {
  const RecordType& type = context_->program.records[op.index];
  if (ABSL_PREDICT_FALSE(context_->traces)) LogOperator(context_->program, *frame, type.name);
  Record* record = Record::New(op.num_inputs);
  for (uint32_t i = 0; i < op.num_inputs; ++i) record->Set(i, inputs[i].Take(), type.types[i]);
  router_->DeliverPort(frame, &frame->region->ports[op.port], Value::Own(record));
  router_->DeliverDone(frame, op);
}

// The last to read a record gets its values as they are: memory shrinks while a gradient unwinds, and kernels find
// buffers that they may reuse.
ABSL_ATTRIBUTE_NOINLINE void OperatorRunner::FireRecall(Frame* frame, const Op& op, Value* inputs) {
  Value input = inputs[0].Take();
  const RecordType& type = context_->program.records[op.index];
  if (ABSL_PREDICT_FALSE(context_->traces)) LogOperator(context_->program, *frame, type.name);
  Record* record = nullptr;
  const absl::Status status = FindRecord(input, type, &record);
  if (ABSL_PREDICT_FALSE(!status.ok())) {
    input.Release();
    return context_->FailAt(InvalidArgument(status.message(), "\n\t [[{{node ", type.name, "}}]]"), frame);
  }
  const bool is_last = record->IsUnshared() && (input.kind == Value::Kind::kRecord ||
                                                (input.kind == Value::Kind::kTensor && input.tensor->RefCountIsOne()));
  const Port* ports = &frame->region->ports[op.port];
  for (uint32_t i = 0; i < op.num_ports; ++i) {
    router_->DeliverPort(frame, ports + i, is_last ? record->Take(i) : record->Get(i).Copy());
  }
  input.Release();
  router_->DeliverDone(frame, op);
}

}  // namespace tensorflow_recursion
