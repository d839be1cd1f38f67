// Writes the steps of a function, and knows in which register or constant each value of the graph is.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_STEP_WRITER_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_STEP_WRITER_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "cc/bytecode/compile_context.h"
#include "cc/bytecode/steps.h"

namespace tensorflow_recursion {

// Says where a value is: in a register, or a constant.
struct StepOperand {
  VirtualId value;
  uint64_t constant = 0;
  bool is_constant() const { return value == kNone; }
};

// Writes the steps of one function. Values get their registers when their nodes are emitted: Define() says which.
class StepWriter {
 public:
  StepWriter(CompileContext* context, FunctionSteps* steps) : context_(*context), steps_(*steps) {}

  // Say where the value at a port of a node is, or at all its ports.
  void Define(NodeId id, int port, StepOperand value) { values_[{id, port}] = value; }
  void DefineAll(NodeId id, StepOperand value);
  // Where the value is. If nobody has defined it, misses_values() is true from now on.
  StepOperand ValueOf(const Input& input);
  bool misses_values() const { return misses_values_; }
  // The register of a merge or of a loop's variable, to which values are moved.
  VirtualId VariableOf(NodeId id) const { return values_.at({id, 0}).value; }

  VirtualId NewVirtual(bool in_window = false) { return steps_.NewVirtual(in_window); }
  LabelId NewLabel() { return steps_.NewLabel(); }
  // The register of a value. If it is a constant, a step puts it into a new one.
  VirtualId Register(const StepOperand& operand);

  // Appends a step, in the loop of set_loop(). The reference is valid until the next one is appended.
  Step& Add(Opcode opcode);
  void AddMove(VirtualId to, const StepOperand& from) { AddMoves({{to, from}}); }
  // Moves all values at once: a register that one move overwrites may be read by another.
  void AddMoves(const std::vector<std::pair<VirtualId, StepOperand>>& moves);
  void AddJump(LabelId label) { Add(Opcode::kJump).labels = {label}; }
  void Bind(LabelId label) { Add(Opcode::kMove).bound = label; }
  // Sets the innermost loop around the steps that follow, see Step::loop.
  void set_loop(int number) { loop_ = number; }

 private:
  StepOperand ValueOfConstant(ConstantId constant);

  CompileContext& context_;
  FunctionSteps& steps_;
  // By node and port.
  std::map<std::pair<NodeId, int>, StepOperand> values_;
  int loop_ = 0;
  bool misses_values_ = false;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_STEP_WRITER_H_
