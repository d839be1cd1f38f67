// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/fork_plans.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace tensorflow_recursion {
namespace {

// Whether the instruction may go on with another one than the next. Instructions on records count, too, because they do
// more than compute a register.
bool LeavesLine(Format format) {
  switch (format) {
    case Format::kRRJump:
    case Format::kRKJump:
    case Format::kRJump:
    case Format::kJump:
    case Format::kR:
    case Format::kReturnUnlessRR:
    case Format::kReturnUnlessRK:
    case Format::kReturnRR:
    case Format::kReturnRK:
    case Format::kCase:
    case Format::kNone:
    case Format::kOpenRecord:
    case Format::kMakeRecord:
    case Format::kKeep:
      return true;
    default:
      return false;
  }
}

// The registers that the instruction reads, which must be neither a jump nor a call.
std::vector<uint16_t> ReadsOf(const Instruction* instruction) {
  switch (InfoOf(instruction->opcode).format) {
    case Format::kRRR:
      return {instruction->b, instruction->c};
    case Format::kRRK:
    case Format::kRR:
    case Format::kField:
      return {instruction->b};
    case Format::kApply:
    case Format::kElementAt:
      return {instruction->b, instruction[1].y(), instruction[1].z()};
    default:
      return {};
  }
}

// The instructions from one call to a later one that need not wait for it. Those of `before` compute the arguments of
// the later one.
struct Line {
  uint32_t first = 0;
  uint32_t last = 0;
  std::vector<uint32_t> before;
};

// The functions that make records, or call one that does. Calls of these are not split off, because records belong to
// the interpreter that makes them.
std::vector<bool> MakesRecords(const Code& code) {
  std::vector<std::vector<size_t>> callers(code.functions.size());
  std::vector<size_t> pending;
  for (size_t i = 0; i < code.functions.size(); ++i) {
    const CodeFunction& function = code.functions[i];
    for (uint32_t at = function.begin; at < function.end; at += SizeOf(code.instructions[at].opcode)) {
      const Instruction& instruction = code.instructions[at];
      if (IsCall(instruction.opcode)) callers[instruction.b].push_back(i);
      if (instruction.opcode == Opcode::kMakeRecord) pending.push_back(i);
    }
  }
  std::vector<bool> makes(code.functions.size(), false);
  while (!pending.empty()) {
    const size_t function = pending.back();
    pending.pop_back();
    if (makes[function]) continue;
    makes[function] = true;
    pending.insert(pending.end(), callers[function].begin(), callers[function].end());
  }
  return makes;
}

// Looks at each call of each function, and writes a plan if a later call need not wait for it.
class Planner {
 public:
  explicit Planner(Code* code) : code_(*code), makes_records_(MakesRecords(*code)) {}

  void Run() {
    code_.functions_end = static_cast<uint32_t>(code_.instructions.size());
    code_.plan_of_call.assign(code_.functions_end, ForkPlan::kNone);
    for (size_t i = 0; i < code_.functions.size(); ++i) {
      const CodeFunction function = code_.functions[i];
      for (uint32_t at = function.begin; at < function.end; at += SizeOf(code_.instructions[at].opcode)) {
        if (!IsCall(code_.instructions[at].opcode)) continue;
        if (const auto line = FindLine(function, at)) Write(static_cast<uint32_t>(i), *line);
      }
    }
  }

 private:
  const CodeFunction& CalleeOf(const Instruction& call) const { return code_.functions[call.b]; }

  // Walks on from the call to one that could run beside it, and notes on the way which registers are known without the
  // first call's result.
  std::optional<Line> FindLine(const CodeFunction& function, uint32_t call) const {
    Line line;
    line.first = call;
    std::vector<bool> is_known(function.frame_words, true);
    ForgetCall(code_.instructions[call], &is_known);
    for (uint32_t at = Behind(call); at < function.end; at += SizeOf(code_.instructions[at].opcode)) {
      const Instruction& instruction = code_.instructions[at];
      if (LeavesLine(InfoOf(instruction.opcode).format)) return std::nullopt;
      if (IsCall(instruction.opcode)) {
        if (InfoOf(instruction.opcode).format == Format::kCallRK) {
          const Instruction& second = code_.instructions[at + 1];
          is_known[second.c] = is_known[second.y()];
        }
        if (!makes_records_[instruction.b] && KnowsArguments(instruction, is_known)) {
          line.last = at;
          return line;
        }
        ForgetCall(instruction, &is_known);
        continue;
      }
      const std::vector<uint16_t> reads = ReadsOf(&instruction);
      const bool is_computable = std::all_of(reads.begin(), reads.end(), [&](uint16_t read) { return is_known[read]; });
      if (is_computable) line.before.push_back(at);
      is_known[instruction.a] = is_computable;
      if (instruction.opcode == Opcode::kMove2) is_known[instruction.a + 1u] = is_computable;
    }
    return std::nullopt;
  }

  bool KnowsArguments(const Instruction& call, const std::vector<bool>& is_known) const {
    for (size_t i = 0; i < CalleeOf(call).arguments.size(); ++i) {
      if (!is_known[call.c + i]) return false;
    }
    return true;
  }

  // A call overwrites its window, and the word below it. Its result is not there yet.
  void ForgetCall(const Instruction& call, std::vector<bool>* is_known) const {
    for (size_t i = call.c - size_t{1}; i < is_known->size(); ++i) (*is_known)[i] = false;
    if (CalleeOf(call).results.size() == 1) (*is_known)[call.a] = false;
  }

  void Write(uint32_t function, const Line& line) {
    const Instruction first = code_.instructions[line.first];
    const Instruction last = code_.instructions[line.last];
    const size_t rest_size = line.last - line.first + 1;
    const size_t back = Here() + line.before.size() * 2 + CalleeOf(last).results.size() + 5 + rest_size - line.last;
    if (back >= static_cast<size_t>(std::numeric_limits<int16_t>::max())) return;  // no jump leads back so far
    ForkPlan plan;
    plan.function = function;
    plan.callee = last.b;
    plan.num_registers = first.c - 1u;
    plan.begin = Here();
    WriteForkedCall(line, last);
    plan.rest = Here();
    WriteRest(line, last);
    code_.plan_of_call[Behind(line.first) - 1] = static_cast<uint32_t>(code_.fork_plans.size());
    code_.fork_plans.push_back(plan);
  }

  // Writes what another thread runs: it computes the arguments, makes the call, and returns its results.
  void WriteForkedCall(const Line& line, const Instruction& call) {
    for (const uint32_t at : line.before) Copy(at);
    Copy(line.last);
    const auto num_results = static_cast<uint16_t>(CalleeOf(call).results.size());
    if (num_results == 1) {
      code_.instructions.push_back({Opcode::kReturn, call.a});
      return;
    }
    for (uint16_t i = 0; i < num_results; ++i) {
      code_.instructions.push_back({Opcode::kMove, i, static_cast<uint16_t>(call.c + i)});
    }
    code_.instructions.push_back({Opcode::kReturnAll});
  }

  // Writes what the caller does when its first call returns. It is a copy of the usual instructions, except that it
  // joins the call that was split off. If nobody has begun that call, the caller makes it after all.
  void WriteRest(const Line& line, const Instruction& call) {
    for (uint32_t at = Behind(line.first); at < line.last; at += SizeOf(code_.instructions[at].opcode)) Copy(at);
    code_.instructions.push_back({Opcode::kJoin, call.a, call.b, call.c});
    Copy(line.last);
    const int64_t distance = int64_t{Behind(line.last)} - Here();
    code_.instructions.push_back({Opcode::kJump, 0, 0, static_cast<uint16_t>(distance)});
  }

  // Copies an instruction, with what errors and special cases know about it.
  void Copy(uint32_t at) {
    if (const KernelCase* const found = code_.KernelCaseAt(at)) {
      KernelCase copy = *found;
      copy.instruction = Here();
      code_.kernel_cases.push_back(std::move(copy));
    }
    if (const CallNote* const found = code_.CallAt(at)) {
      CallNote copy = *found;
      copy.instruction = Here();
      code_.calls.push_back(std::move(copy));
    }
    const int size = SizeOf(code_.instructions[at].opcode);
    for (int i = 0; i < size; ++i) {
      const Instruction copy = code_.instructions[at + i];
      code_.instructions.push_back(copy);
    }
  }

  uint32_t Behind(uint32_t at) const { return at + SizeOf(code_.instructions[at].opcode); }
  uint32_t Here() const { return static_cast<uint32_t>(code_.instructions.size()); }

  Code& code_;
  const std::vector<bool> makes_records_;
};

}  // namespace

void AddForkPlans(Code* code) { Planner(code).Run(); }

}  // namespace tensorflow_recursion
