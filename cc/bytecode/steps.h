// Compiled code before it has registers: instructions on as many values as there are.
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

// A register of which there are as many as one likes. Most are written by one step; what merges the sides of a
// conditional is written on each side, a loop's variable before the loop and in it.
using VirtualId = Id<struct VirtualTag>;
using LabelId = Id<struct LabelTag>;

// What an operator's kernel gets if the instruction can't do it.
struct KernelOperand {
  VirtualId value;  // kNone: `constant`
  uint64_t constant = 0;
  bool is_array = false;
};

// Mostly one instruction; kMove copies all `operands` to all `results` at once, and then is as many as it takes.
struct Step {
  explicit Step(Opcode opcode) : opcode(opcode) {}

  Opcode opcode;
  std::vector<VirtualId> results;
  std::vector<VirtualId> operands;
  std::optional<uint64_t> constant;  // of kConstant, and the second operand of what ends in K
  std::vector<LabelId> labels;       // of a jump; of a kCase one for each side
  LabelId bound;                     // no instruction, but where jumps to this label come
  // The function of a kCall, the operator of a kApply, the access of a kElementAt, the layout of a kOpenRecord or
  // kMakeRecord, the value of a record in a kField, kKeepNumber or kKeepRecord.
  int target = 0;
  int loop = 0;  // the innermost loop around it, as the emitter numbers them; 0: none

  std::optional<int> kernel;  // what does special cases
  std::vector<KernelOperand> kernel_operands;
  std::string site;    // of a kCall
  std::string callee;  // of a kCall

  bool BindsLabel() const { return bound != kNone; }
  bool is(Opcode other) const { return !BindsLabel() && opcode == other; }
  bool Returns() const { return is(Opcode::kReturn) || is(Opcode::kReturnAll); }
  // Whether the step behind it is reached by jumps alone.
  bool EndsBlock() const { return Returns() || is(Opcode::kJump) || is(Opcode::kRepeat) || is(Opcode::kCase); }
  // Whether it does nothing but compute its results, and can't fail.
  bool IsPure() const {
    const bool uses_record = is(Opcode::kOpenRecord) || is(Opcode::kMakeRecord);
    return !results.empty() && !kernel && !uses_record && !is(Opcode::kCall) && !is(Opcode::kElementAt);
  }
};

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

// Takes out what the straightforward translation has too much: moves of what could be computed where it is needed,
// comparisons apart from the jump on them, jumps to a return, results that nobody reads. Returns how many rounds over
// all steps that took, which does not depend on how many there are.
int SimplifySteps(FunctionSteps* function);

// Then, makes one step of a return and the comparison or arithmetic before it.
void FuseReturns(FunctionSteps* function);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_STEPS_H_
