// Steps of a function written by hand, and as text.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_BYTECODE_STEP_LIST_H_
#define TENSORFLOW_RECURSION_TESTS_CC_BYTECODE_STEP_LIST_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cc/bytecode/steps.h"

namespace tensorflow_recursion {

inline std::string NamesOf(const std::vector<VirtualId>& values) {
  return absl::StrJoin(values, ", ", [](std::string* text, VirtualId value) {
    absl::StrAppend(text, "v", static_cast<uint32_t>(value));
  });
}

inline std::string TextOf(const Step& step) {
  if (step.BindsLabel()) return absl::StrCat("L", static_cast<uint32_t>(step.bound), ":");
  std::string text = step.results.empty() ? "" : NamesOf(step.results) + " = ";
  absl::StrAppend(&text, InfoOf(step.opcode).name);
  if (!step.operands.empty()) absl::StrAppend(&text, " ", NamesOf(step.operands));
  if (step.constant) absl::StrAppend(&text, step.operands.empty() ? " " : ", ", *step.constant);
  for (LabelId label : step.labels) absl::StrAppend(&text, " -> L", static_cast<uint32_t>(label));
  return text;
}

// A line for each step: values are v0, v1, ..., labels L0, L1, ...
inline std::string TextOf(const FunctionSteps& function) {
  std::string text;
  for (const Step& step : function.steps) absl::StrAppend(&text, TextOf(step), "\n");
  return text;
}

class StepList {
 public:
  VirtualId Argument() {
    function_.arguments.push_back(Value());
    return function_.arguments.back();
  }
  VirtualId Value() { return function_.NewVirtual(); }
  VirtualId InWindow() { return function_.NewVirtual(/*in_window=*/true); }
  LabelId Label() { return function_.NewLabel(); }

  // The step is good until the next one is added.
  Step& Add(Opcode opcode, std::vector<VirtualId> results, std::vector<VirtualId> operands) {
    Step& step = function_.steps.emplace_back(opcode);
    step.results = std::move(results);
    step.operands = std::move(operands);
    return step;
  }
  // Computes a new value of one that is there and a constant.
  VirtualId Compute(Opcode opcode, VirtualId operand, uint64_t constant) {
    const VirtualId result = Value();
    Add(opcode, {result}, {operand}).constant = constant;
    return result;
  }
  void Jump(Opcode opcode, std::vector<VirtualId> operands, LabelId label) {
    Add(opcode, {}, std::move(operands)).labels = {label};
  }
  void Bind(LabelId label) { Add(Opcode::kMove, {}, {}).bound = label; }
  void Return(VirtualId value) { Add(Opcode::kReturn, {}, {value}); }

  FunctionSteps* function() { return &function_; }

  std::string Text() const { return TextOf(function_); }

 private:
  FunctionSteps function_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_BYTECODE_STEP_LIST_H_
