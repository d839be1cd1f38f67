// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/code_builder.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tensorflow_recursion {
namespace {

constexpr int kMaxOperand = std::numeric_limits<uint16_t>::max();

// The highest register that the instruction reads or writes, plus one.
uint32_t RegistersOf(const Instruction* instruction) {
  const uint32_t a = instruction->a + 1u;
  const uint32_t b = instruction->b + 1u;
  const uint32_t c = instruction->c + 1u;
  switch (InfoOf(instruction->opcode).format) {
    case Format::kRRR:
      return std::max({instruction->opcode == Opcode::kMove2 ? a + 1 : a, b, c});
    case Format::kReturnUnlessRR:
      return std::max({a, b, c});
    case Format::kReturnRR:
      return std::max(b, c);
    case Format::kReturnRK:
      return b;
    case Format::kReturnUnlessRK:
    case Format::kRR:
    case Format::kOpenRecord:
    case Format::kField:
    case Format::kRRK:
    case Format::kRRJump:
      return std::max(a, b);
    case Format::kRK:
    case Format::kRKJump:
    case Format::kRJump:
    case Format::kR:
    case Format::kCase:
    case Format::kMakeRecord:
      return a;
    case Format::kKeep:
    case Format::kCall:
      return std::max(a, c);
    case Format::kCallRK:
      return std::max({a, c, instruction[1].y() + 1u, instruction[1].c + 1u});
    case Format::kApply:
    case Format::kElementAt:
      return std::max({a, b, instruction[1].y() + 1u, instruction[1].z() + 1u});
    case Format::kJump:
    case Format::kNone:
      return 0;
  }
  return 0;
}

}  // namespace

int CodeBuilder::Declare(CodeFunction function) {
  code_->functions.push_back(std::move(function));
  code_->entries.emplace_back();
  return static_cast<int>(code_->functions.size()) - 1;
}

void CodeBuilder::Begin(int function) {
  function_ = function;
  overflows_ = false;
  labels_.clear();
  jumps_.clear();
  code_->functions[function].begin = Here();
}

absl::Status CodeBuilder::End() {
  CodeFunction& function = code_->functions[function_];
  function.end = Here();
  for (const auto& [jump, label] : jumps_) {
    const int64_t distance = static_cast<int64_t>(labels_[label]) - jump;
    overflows_ = overflows_ || distance != static_cast<int16_t>(distance);
    code_->instructions[jump].c = static_cast<uint16_t>(distance);
  }
  if (overflows_) return absl::UnimplementedError(absl::StrCat("'", function.name, "' is too large to be compiled"));
  function.frame_words = static_cast<uint32_t>(std::max(function.arguments.size(), function.results.size()));
  for (uint32_t i = function.begin; i < function.end; i += SizeOf(code_->instructions[i].opcode)) {
    function.frame_words = std::max(function.frame_words, RegistersOf(&code_->instructions[i]));
  }
  const Instruction& first = code_->instructions[function.begin];
  code_->entries[function_] = {function.begin, function.frame_words, first.a, first.b, first.c};
  return absl::OkStatus();
}

uint16_t CodeBuilder::Constant(uint64_t bits) {
  const auto [position, inserted] = constants_.try_emplace(bits, Narrow(static_cast<int>(code_->constants.size())));
  if (inserted) code_->constants.push_back(bits);
  return position->second;
}

uint16_t CodeBuilder::Operator(const std::string& name, NumberFunction function) {
  const auto [position, inserted] =
      operators_.try_emplace({name, function}, Narrow(static_cast<int>(code_->operators.size())));
  if (inserted) {
    code_->operators.push_back(function);
    code_->operator_names.push_back(name);
  }
  return position->second;
}

uint16_t CodeBuilder::Record(RecordType type) {
  code_->records.emplace_back(std::move(type));
  return Narrow(static_cast<int>(code_->records.size()) - 1);
}

CodeBuilder::Label CodeBuilder::NewLabel() {
  labels_.push_back(0);
  return static_cast<Label>(labels_.size()) - 1;
}

uint16_t CodeBuilder::Narrow(int operand) {
  overflows_ = overflows_ || operand < 0 || operand > kMaxOperand;
  return static_cast<uint16_t>(operand);
}

void CodeBuilder::Emit(Opcode opcode, int a, int b, int c) {
  code_->instructions.push_back({opcode, Narrow(a), Narrow(b), Narrow(c)});
}

void CodeBuilder::EmitJump(Opcode opcode, int a, int b, Label label) {
  jumps_.emplace_back(Here(), label);
  Emit(opcode, a, b);
}

void CodeBuilder::EmitApply(int a, int function, int x, int y, int z) {
  Emit(Opcode::kApply, a, x, function);
  Emit(Opcode::kHalt, y, z);
}

void CodeBuilder::EmitCall(Opcode opcode, int a, int function, int window, const CallArgument& argument) {
  Emit(opcode, a, function, window);
  Emit(Opcode::kHalt, argument.from, argument.constant, argument.to);
}

void CodeBuilder::EmitElementAt(int a, int array, ElementAccess access, int y, int z) {
  Emit(Opcode::kElementAt, a, array, access.Encode());
  Emit(Opcode::kHalt, y, z);
}

void CodeBuilder::AddKernelCase(KernelCase kernel_case) {
  kernel_case.instruction = Here();
  code_->kernel_cases.push_back(std::move(kernel_case));
}

void CodeBuilder::AddCall(std::string site, std::string callee) {
  code_->calls.push_back({Here(), std::move(site), std::move(callee)});
}

}  // namespace tensorflow_recursion
