// Describes compiled code before it has registers: steps, which read and write as many values as there are.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_STEPS_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_STEPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cc/base/ids.h"
#include "cc/bytecode/instruction.h"

namespace tensorflow_recursion {

// A value before it has a register. Most values are written by one step. One that merges the sides of a conditional is
// written on each side, and a loop's variable is written before the loop and in it.
using VirtualId = Id<struct VirtualTag>;
using LabelId = Id<struct LabelTag>;

// What an operator's kernel reads if the instruction can't do the operator's work. If `value` is kNone, it is the
// constant.
struct KernelOperand {
  VirtualId value;
  uint64_t constant = 0;
  bool is_array = false;
};

// A step mostly becomes one instruction. A kMove copies all `operands` to all `results` at once, and becomes as many
// instructions as that takes.
struct Step {
  explicit Step(Opcode opcode) : opcode(opcode) {}

  Opcode opcode;
  std::vector<VirtualId> results;
  std::vector<VirtualId> operands;
  // What a kConstant yields; the second operand of an opcode that ends in K.
  std::optional<uint64_t> constant;
  // Where a jump goes; a kCase has a label for each side.
  std::vector<LabelId> labels;
  // If this is not kNone, the step is no instruction, but the place to which jumps to this label lead.
  LabelId bound;
  // The function of a kCall, the operator of a kApply, the access of a kElementAt, the layout of a kOpenRecord or
  // kMakeRecord, the value of a record in a kField, kKeepNumber or kKeepRecord.
  int target = 0;
  // The innermost loop around the step, as the emitter numbers them; 0 if there is none.
  int loop = 0;
  // The kernel that does special cases.
  std::optional<int> kernel;
  std::vector<KernelOperand> kernel_operands;
  // What errors say of a kCall (CallNote).
  std::string site;
  std::string callee;

  bool BindsLabel() const { return bound != kNone; }
  bool is(Opcode other) const { return !BindsLabel() && opcode == other; }
  bool Returns() const { return is(Opcode::kReturn) || is(Opcode::kReturnAll); }
  // Whether the step behind this one can only be reached by jumps.
  bool EndsBlock() const { return Returns() || is(Opcode::kJump) || is(Opcode::kRepeat) || is(Opcode::kCase); }
  // Whether it does nothing but compute its results, and can't fail.
  bool IsPure() const {
    const bool uses_record = is(Opcode::kOpenRecord) || is(Opcode::kMakeRecord);
    return !results.empty() && !kernel && !uses_record && !is(Opcode::kCall) && !is(Opcode::kElementAt);
  }
};

// The steps of one function or piece.
struct FunctionSteps {
  std::vector<Step> steps;
  std::vector<VirtualId> arguments;
  uint32_t num_virtuals = 0;
  uint32_t num_labels = 0;
  // Arguments and results of calls, which lie in the windows that calls make.
  IdVector<VirtualId, bool> is_in_window;

  VirtualId NewVirtual(bool in_window = false) {
    ++num_virtuals;
    return is_in_window.Add(in_window);
  }
  LabelId NewLabel() { return LabelId(num_labels++); }
};

// Takes out what a straightforward translation has too much: moves of values that could be computed where they are
// needed, comparisons apart from the jump on them, jumps to a return, results that nobody reads. Returns how many
// rounds over all steps that took. Their number does not depend on how many steps there are.
int SimplifySteps(FunctionSteps* function);

// Makes one step of a return and the comparison or arithmetic before it. To be called after SimplifySteps().
void FuseReturns(FunctionSteps* function);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_STEPS_H_
