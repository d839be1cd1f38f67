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

OperatorRunner::OperatorRunner(WorkerContext* context, ReadyQueue* queue, OperatorInputs* inputs, TokenRouter* router,
                               KernelLauncher* kernels, PieceRunner* pieces, LoopRunner* loops,
                               ControlFlow* control_flow)
    : context_(context),
      queue_(queue),
      inputs_(inputs),
      router_(router),
      kernels_(kernels),
      pieces_(pieces),
      loops_(loops),
      control_flow_(control_flow) {}

void OperatorRunner::Fire(ReadyOperator* item) {
  Frame* const frame = item->frame;
  const OpId index = item->op;
  const Op& op = frame->region->ops[index];
  Value* const inputs = inputs_->Of(frame, op, &item->value);
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

// --- Values ---------------------------------------------------------------------------------------

inline void OperatorRunner::FireScalar(Frame* frame, OpId index, const Op& op, Value* inputs) {
  Value result;
  if (ABSL_PREDICT_FALSE(context_->traces) || ABSL_PREDICT_FALSE(!op.scalar(inputs, &result))) {
    if (ABSL_PREDICT_FALSE(op.reads_element)) return FireSlice(frame, index, op, inputs);
    return kernels_->Fire(frame, index, op, inputs);
  }
  if (ABSL_PREDICT_FALSE(inputs[0].owns())) inputs[0].Release();  // the tensor that a number was read from
  router_->DeliverDone(frame, op);
  router_->DeliverPort(frame, &frame->region->ports[op.port], Value::Scalar(result.bits));
}

ABSL_ATTRIBUTE_NOINLINE void OperatorRunner::FireSlice(Frame* frame, OpId index, const Op& op, Value* inputs) {
  const KernelNode& node = context_->program.KernelOf(op);
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

// This function and the next are out of line, because recursions without gradients should not pay for them in Fire().
ABSL_ATTRIBUTE_NOINLINE void OperatorRunner::FireRetain(Frame* frame, const Op& op, Value* inputs) {
  const RecordType& type = context_->program.RecordOf(op);
  if (ABSL_PREDICT_FALSE(context_->traces)) LogOperator(context_->program, *frame, type.name);
  Record* record = Record::New(op.num_inputs);
  for (uint32_t i = 0; i < op.num_inputs; ++i) record->Set(i, inputs[i].Take(), type.types[i]);
  router_->DeliverPort(frame, &frame->region->ports[op.port], Value::Own(record));
  router_->DeliverDone(frame, op);
}

// If nobody else has the record, the values are taken out of it instead of copied. So memory shrinks while a gradient
// unwinds, and kernels find buffers that they may reuse.
ABSL_ATTRIBUTE_NOINLINE void OperatorRunner::FireRecall(Frame* frame, const Op& op, Value* inputs) {
  Value input = inputs[0].Take();
  const RecordType& type = context_->program.RecordOf(op);
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
