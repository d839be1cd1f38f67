// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/encoder.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "cc/bytecode/move_order.h"
#include "cc/bytecode/register_allocation.h"

namespace tensorflow_recursion {
namespace {

Opcode ReadOfVector(ElementAccess access) {
  static constexpr Opcode kByInt32[] = {Opcode::kElement1ByInt32, Opcode::kElement2ByInt32, Opcode::kElement4ByInt32,
                                        Opcode::kElement8ByInt32};
  static constexpr Opcode kByInt64[] = {Opcode::kElement1ByInt64, Opcode::kElement2ByInt64, Opcode::kElement4ByInt64,
                                        Opcode::kElement8ByInt64};
  return (access.is_int64 ? kByInt64 : kByInt32)[access.log_size];
}

// The call that also computes an argument, by the opcode that computes the argument.
std::optional<Opcode> CallOf(Opcode arithmetic) {
  switch (arithmetic) {
#define TFR_CALL(name, type, T)  \
  case Opcode::k##name##type##K: \
    return Opcode::kCall##name##type##K;
    TFR_ARGUMENTS(TFR_CALL)
#undef TFR_CALL
    default:
      return std::nullopt;
  }
}

// Writes one step after the other, once it is known which register each value has.
class Encoder {
 public:
  Encoder(const FunctionSteps& function, CodeBuilder* builder)
      : function_(function), builder_(*builder), allocation_(AllocateRegisters(function)) {
    for (uint32_t i = 0; i < function.num_labels; ++i) builder_.NewLabel();
  }

  void Run() {
    for (size_t i = 0; i < function_.steps.size();) {
      if (const size_t call = CallFusedWith(i); call > i) {
        EncodeFusedCall(i, call);
        i = call + 1;
      } else {
        EncodeStep(i++);
      }
    }
  }

 private:
  int RegisterOf(VirtualId value) const { return allocation_.registers[value]; }
  int Operand(const Step& step, size_t i) const { return RegisterOf(step.operands[i]); }
  int Result(const Step& step) const { return step.results.empty() ? 0 : RegisterOf(step.results[0]); }
  static CodeBuilder::Label LabelOf(LabelId label) { return static_cast<CodeBuilder::Label>(uint32_t{label}); }

  void EncodeStep(size_t index) {
    const Step& step = function_.steps[index];
    if (step.BindsLabel()) return builder_.Bind(LabelOf(step.bound));
    switch (InfoOf(step.opcode).format) {
      case Format::kRR:
        if (step.is(Opcode::kMove)) return EncodeMoves(step);
        return builder_.Emit(step.opcode, Result(step), Operand(step, 0));
      case Format::kRRR:
        AddKernelCase(step);
        return builder_.Emit(step.opcode, Result(step), Operand(step, 0), Operand(step, 1));
      case Format::kRRK:
        AddKernelCase(step);
        return builder_.Emit(step.opcode, Result(step), Operand(step, 0), builder_.Constant(*step.constant));
      case Format::kRK:
        return builder_.Emit(step.opcode, Result(step), builder_.Constant(*step.constant));
      case Format::kRRJump:
        return builder_.EmitJump(step.opcode, Operand(step, 0), Operand(step, 1), LabelOf(step.labels[0]));
      case Format::kRKJump:
        return builder_.EmitJump(step.opcode, Operand(step, 0), builder_.Constant(*step.constant),
                                 LabelOf(step.labels[0]));
      case Format::kRJump:
        return builder_.EmitJump(step.opcode, Operand(step, 0), 0, LabelOf(step.labels[0]));
      case Format::kJump:
        return builder_.EmitJump(step.opcode, 0, 0, LabelOf(step.labels[0]));
      case Format::kR:
        return builder_.Emit(step.opcode, Operand(step, 0));
      case Format::kCall:
        return EncodeCall(step, allocation_.windows[index]);
      case Format::kReturnUnlessRR:
        return builder_.Emit(step.opcode, Operand(step, 0), Operand(step, 1), Operand(step, 2));
      case Format::kReturnUnlessRK:
        return builder_.Emit(step.opcode, Operand(step, 0), Operand(step, 1), builder_.Constant(*step.constant));
      case Format::kReturnRR:
        return builder_.Emit(step.opcode, 0, Operand(step, 0), Operand(step, 1));
      case Format::kReturnRK:
        return builder_.Emit(step.opcode, 0, Operand(step, 0), builder_.Constant(*step.constant));
      case Format::kCallRK:
        return;  // is no step of its own: see CallFusedWith()
      case Format::kCase:
        return EncodeCase(step);
      case Format::kApply:
        AddKernelCase(step);
        return builder_.EmitApply(Result(step), step.target, Operand(step, 0),
                                  step.operands.size() > 1 ? Operand(step, 1) : 0,
                                  step.operands.size() > 2 ? Operand(step, 2) : 0);
      case Format::kElementAt:
        return EncodeRead(step);
      case Format::kOpenRecord:
      case Format::kField:
        return builder_.Emit(step.opcode, Result(step), Operand(step, 0), step.target);
      case Format::kMakeRecord:
        return builder_.Emit(step.opcode, Result(step), step.target);
      case Format::kKeep:
        return builder_.Emit(step.opcode, Operand(step, 0), step.target, Operand(step, 1));
      case Format::kNone:
        return EncodeReturnAll(step);
    }
  }

  // The call that step `i` computes an argument for, if one instruction can do both; otherwise `i`. Moves of other
  // arguments may stand between them.
  size_t CallFusedWith(size_t i) const {
    const auto& steps = function_.steps;
    if (steps[i].BindsLabel() || !CallOf(steps[i].opcode)) return i;
    const bool has_moves = i + 1 < steps.size() && steps[i + 1].is(Opcode::kMove);
    const size_t call = has_moves ? i + 2 : i + 1;
    if (call >= steps.size() || !steps[call].is(Opcode::kCall)) return i;
    const auto& arguments = steps[call].operands;
    const int to = Result(steps[i]);
    const int from = Operand(steps[i], 0);
    if (to == from || std::find(arguments.begin(), arguments.end(), steps[i].results[0]) == arguments.end()) return i;
    if (!has_moves) return call;
    for (size_t k = 0; k < steps[i + 1].results.size(); ++k) {  // the moves would then come first
      const int moved = RegisterOf(steps[i + 1].results[k]);
      if (moved == from || moved == to || Operand(steps[i + 1], k) == to) return i;
    }
    return call;
  }

  void EncodeFusedCall(size_t i, size_t call) {
    if (call == i + 2) EncodeMoves(function_.steps[i + 1]);
    const Step& argument = function_.steps[i];
    const Step& step = function_.steps[call];
    const uint16_t window = allocation_.windows[call];
    builder_.AddCall(step.site, step.callee);
    builder_.EmitCall(*CallOf(argument.opcode), step.results.size() == 1 ? Result(step) : window, step.target, window,
                      {Result(argument), Operand(argument, 0), builder_.Constant(*argument.constant)});
  }

  void EncodeCall(const Step& step, uint16_t window) {
    builder_.AddCall(step.site, step.callee);
    const bool has_one = step.results.size() == 1;
    builder_.Emit(Opcode::kCall, has_one ? RegisterOf(step.results[0]) : window, step.target, window);
  }

  void EncodeCase(const Step& step) {
    builder_.Emit(Opcode::kCase, Operand(step, 0), static_cast<int>(step.labels.size()));
    for (LabelId label : step.labels) builder_.EmitJump(Opcode::kJump, 0, 0, LabelOf(label));
  }

  void EncodeRead(const Step& step) {
    const ElementAccess access = ElementAccess::Decode(static_cast<uint16_t>(step.target));
    AddKernelCase(step);
    if (!access.is_matrix && !access.counts_from_end) {
      return builder_.Emit(ReadOfVector(access), Result(step), Operand(step, 0), Operand(step, 1));
    }
    builder_.EmitElementAt(Result(step), Operand(step, 0), access, Operand(step, 1),
                           access.is_matrix ? Operand(step, 2) : 0);
  }

  void EncodeMoves(const Step& step) {
    std::vector<RegisterMove> moves;
    moves.reserve(step.results.size());
    for (size_t i = 0; i < step.results.size(); ++i) moves.push_back({RegisterOf(step.results[i]), Operand(step, i)});
    EmitMoves(OrderMoves(std::move(moves), allocation_.spare));
  }

  void EncodeReturnAll(const Step& step) {
    const int num_results = static_cast<int>(step.operands.size());
    std::vector<RegisterMove> moves;
    moves.reserve(step.operands.size());
    for (int i = 0; i < num_results; ++i) moves.push_back({i, Operand(step, i)});
    EmitMoves(OrderMoves(std::move(moves), std::max<int>(allocation_.spare, num_results)));
    builder_.Emit(Opcode::kReturnAll);
  }

  // Emits moves one after the other, and two at once where they go to neighbouring registers.
  void EmitMoves(const std::vector<RegisterMove>& moves) {
    for (size_t i = 0; i < moves.size(); ++i) {
      const auto& [to, from] = moves[i];
      if (i + 1 < moves.size() && moves[i + 1].to == to + 1) {
        builder_.Emit(Opcode::kMove2, to, from, moves[++i].from);
      } else {
        builder_.Emit(Opcode::kMove, to, from);
      }
    }
  }

  void AddKernelCase(const Step& step) {
    if (!step.kernel) return;
    using Kind = KernelCase::Operand::Kind;
    KernelCase kernel_case;
    kernel_case.kernel = *step.kernel;
    kernel_case.result = static_cast<uint16_t>(Result(step));
    for (const KernelOperand& operand : step.kernel_operands) {
      const bool is_constant = operand.value == kNone;
      const int position = is_constant ? builder_.Constant(operand.constant) : RegisterOf(operand.value);
      const Kind kind = is_constant ? Kind::kConstant : operand.is_array ? Kind::kArray : Kind::kNumber;
      kernel_case.operands.push_back({kind, static_cast<uint16_t>(position)});
    }
    builder_.AddKernelCase(std::move(kernel_case));
  }

  const FunctionSteps& function_;
  CodeBuilder& builder_;
  const RegisterAllocation allocation_;
};

}  // namespace

void Encode(const FunctionSteps& function, CodeBuilder* builder) { Encoder(function, builder).Run(); }

}  // namespace tensorflow_recursion
