// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/code.h"

#include <algorithm>

namespace tensorflow_recursion {
namespace {

template <typename Note>
const Note* Find(const std::vector<Note>& notes, uint32_t instruction) {
  const auto position = std::lower_bound(notes.begin(), notes.end(), instruction,
                                         [](const Note& note, uint32_t value) { return note.instruction < value; });
  return position != notes.end() && position->instruction == instruction ? &*position : nullptr;
}

}  // namespace

Array::Array(const tensorflow::Tensor& from) : tensor(&from), data(from.data()) {
  if (from.dims() == 1) length = static_cast<uint64_t>(from.dim_size(0));
  if (from.dims() != 2) return;
  rows = static_cast<uint64_t>(from.dim_size(0));
  columns = static_cast<uint64_t>(from.dim_size(1));
}

Code::Code() : instructions({{Opcode::kHalt}}) {}

const CodeFunction* Code::FunctionAt(uint32_t instruction) const {
  if (instruction >= functions_end) {
    const auto next = std::upper_bound(fork_plans.begin(), fork_plans.end(), instruction,
                                       [](uint32_t value, const ForkPlan& plan) { return value < plan.begin; });
    return &functions[(next - 1)->function];
  }
  const auto behind = std::upper_bound(functions.begin(), functions.end(), instruction,
                                       [](uint32_t value, const CodeFunction& f) { return value < f.begin; });
  return behind == functions.begin() ? nullptr : &*(behind - 1);
}

const KernelCase* Code::KernelCaseAt(uint32_t instruction) const { return Find(kernel_cases, instruction); }

const CallNote* Code::CallAt(uint32_t instruction) const { return Find(calls, instruction); }

}  // namespace tensorflow_recursion
