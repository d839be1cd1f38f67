// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/piece_runner.h"

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "cc/base/status.h"
#include "cc/executor/kernel_runner.h"
#include "cc/executor/run_log.h"
#include "cc/executor/worker_profile.h"
#include "cc/program/element_operators.h"
#include "cc/values/scalar_operators.h"

namespace tensorflow_recursion {

PieceRunner::PieceRunner(WorkerContext* context, TokenRouter* router) : context_(context), router_(router) {
  const Program& program = context->program;
  if (program.piece_code == nullptr) return;
  interpreter_.emplace(*program.piece_code, program.options.max_depth, nullptr, nullptr);
  arrays_.reserve(program.max_inputs);  // it must not move, because registers point into it
}

void PieceRunner::Fire(Frame* frame, const Op& op, Value* inputs) {
  const Piece& piece = context_->program.PieceOf(op);
  ProfileTimer timer(context_->profile.get());
  const bool may_run = !context_->traces && !piece.is_unfit.load(std::memory_order_relaxed);
  const bool has_run = ABSL_PREDICT_TRUE(may_run && RunCode(piece, inputs));
  if (ABSL_PREDICT_FALSE(timer.is_on()) && has_run) timer.profile()->NotePiece(op.index, *frame->region, timer.Lap());
  const bool succeeds = has_run || RunMembers(frame, piece, inputs);
  for (uint32_t i = 0; i < op.num_inputs; ++i) {
    if (ABSL_PREDICT_FALSE(inputs[i].owns())) inputs[i].Release();
  }
  if (!succeeds) return Clear();
  router_->DeliverDone(frame, op);
  const Port* const ports = &frame->region->ports[op.port];
  for (uint32_t i = 0; i < op.num_ports; ++i) {
    router_->DeliverPort(frame, ports + i,
                         has_run ? Value::Scalar(interpreter_->results()[i]) : results_[piece.outputs[i]].Take());
  }
  if (!has_run) Clear();
}

// Returns whether the code could compute the piece.
inline bool PieceRunner::RunCode(const Piece& piece, Value* inputs) {
  arrays_.clear();
  registers_.clear();
  for (size_t i = 0; i < piece.is_array.size(); ++i) {
    if (piece.is_array[i]) inputs[i].Flatten();
    const tensorflow::Tensor* const tensor = piece.is_array[i] ? inputs[i].tensor_or_null() : nullptr;
    if (tensor != nullptr) {
      registers_.push_back(ToBits(&arrays_.emplace_back(*tensor)));
    } else if (!piece.is_array[i] && inputs[i].is_scalar()) {
      registers_.push_back(inputs[i].bits);
    } else {
      return false;
    }
  }
  int64_t budget = 1;  // of calls: a piece makes none
  return interpreter_->Start(piece.function, registers_, /*depth=*/0) &&
         interpreter_->Resume(&budget) == Interpreter::State::kDone;
}

// --- One by one -------------------------------------------------------------------------------------

// Returns whether all of them have run. If not, the run has failed.
ABSL_ATTRIBUTE_NOINLINE bool PieceRunner::RunMembers(const Frame* frame, const Piece& piece, const Value* inputs) {
  for (size_t i = 0; i < piece.is_array.size(); ++i) {
    if (inputs[i].is_scalar() == piece.is_array[i]) piece.is_unfit.store(true, std::memory_order_relaxed);
  }
  for (const PieceMember& member : piece.members) {
    if (!RunMember(frame, piece, member, inputs)) return false;
  }
  return true;
}

bool PieceRunner::RunMember(const Frame* frame, const Piece& piece, const PieceMember& member, const Value* inputs) {
  for (const PieceMember::Operand& operand : member.operands) {
    if (operand.input != kNone) {
      operands_.push_back(inputs[operand.input].Copy());
    } else {
      operands_.push_back(operand.member != kNone ? results_[operand.member].Copy() : operand.constant);
    }
  }
  Value result = Value::Empty();
  const bool is_done = !context_->traces && member.scalar(operands_.data(), &result);
  if (!is_done && !RunKernel(frame, member, &result)) return false;
  if (!result.is_scalar()) piece.is_unfit.store(true, std::memory_order_relaxed);
  results_.push_back(result);
  for (Value& operand : operands_) operand.Release();
  operands_.clear();
  return true;
}

bool PieceRunner::RunKernel(const Frame* frame, const PieceMember& member, Value* result) {
  const KernelNode& node = context_->program.kernels[member.kernel];
  if (member.reads_element && !PackIndices(node.inputs[1], operands_.data())) {
    context_->FailAt(IndexIsNoNumber(node.name), frame);
    return false;
  }
  KernelCall call{operands_.data(), result, FrameTag(), context_->index, false};
  ProfileTimer timer(context_->profile.get());
  const absl::Status status = context_->run->environment.runner->Run(node, absl::MakeSpan(&call, 1));
  if (ABSL_PREDICT_FALSE(timer.is_on())) timer.profile()->NoteKernel(node, *frame->region, timer.Lap());
  if (!status.ok()) context_->FailAt(status, frame);
  if (status.ok() && context_->traces) LogKernel(context_->program, *frame, node, result);
  context_->Spend(1);
  return status.ok();
}

void PieceRunner::Clear() {
  for (std::vector<Value>* values : {&operands_, &results_}) {
    for (Value& value : *values) value.Release();
    values->clear();
  }
}

}  // namespace tensorflow_recursion
