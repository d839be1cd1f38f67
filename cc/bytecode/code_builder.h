// Writes compiled functions instruction by instruction, makes distances of labels, and numbers constants.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_CODE_BUILDER_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_CODE_BUILDER_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cc/bytecode/code.h"

namespace tensorflow_recursion {

// Appends to a Code. All functions are declared first, so that calls can name them, and then written one after the
// other in that order: Begin(), instructions, End().
class CodeBuilder {
 public:
  // A place in the function that is being written, for jumps; Bind() says where it is.
  using Label = int;

  explicit CodeBuilder(Code* code) : code_(code) {}

  int Declare(CodeFunction function);
  void Begin(int function);
  // Resolves jumps, and finds how large the function's frames are. Unimplemented if something does not fit into an
  // instruction, because there are too many registers or a jump goes too far.
  absl::Status End();

  // These return the index of a constant, of an operator for kApply, and of the layout of a record.
  uint16_t Constant(uint64_t bits);
  uint16_t Operator(const std::string& name, NumberFunction function);
  uint16_t Record(RecordType type);

  Label NewLabel();
  void Bind(Label label) { labels_[label] = Here(); }

  // Adds an instruction. `a`, `b` and `c` are as the opcode's format says; a jump's `c` comes from the label.
  void Emit(Opcode opcode, int a = 0, int b = 0, int c = 0);
  void EmitJump(Opcode opcode, int a, int b, Label label);
  void EmitApply(int a, int function, int x, int y = 0, int z = 0);
  // What a call instruction does that computes an argument, too: register `to` becomes what the opcode makes of
  // register `from` and a constant.
  struct CallArgument {
    int to;
    int from;
    int constant;
  };
  void EmitCall(Opcode opcode, int a, int function, int window, const CallArgument& argument);
  void EmitElementAt(int a, int array, ElementAccess access, int y, int z = 0);

  // These are about the instruction that is emitted next: which kernel does what it can't do, and what it calls.
  void AddKernelCase(KernelCase kernel_case);
  void AddCall(std::string site, std::string callee);

 private:
  uint32_t Here() const { return static_cast<uint32_t>(code_->instructions.size()); }
  uint16_t Narrow(int operand);

  Code* const code_;
  int function_ = 0;
  bool overflows_ = false;
  std::vector<uint32_t> labels_;
  std::vector<std::pair<uint32_t, Label>> jumps_;
  std::map<uint64_t, uint16_t> constants_;
  std::map<std::pair<std::string, NumberFunction>, uint16_t> operators_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_CODE_BUILDER_H_
