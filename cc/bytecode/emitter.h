// Turns the flow graph of a function's body into steps: the way from dataflow to an order.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_EMITTER_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_EMITTER_H_

#include <map>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "cc/bytecode/blocks.h"
#include "cc/bytecode/compile_context.h"
#include "cc/bytecode/node_emitter.h"
#include "cc/bytecode/schedule.h"
#include "cc/bytecode/step_writer.h"
#include "cc/bytecode/steps.h"

namespace tensorflow_recursion {

// Emits nodes block by block. In a block, whatever has its inputs is emitted, in an order that computes arguments right
// before their call; then a conditional that has all that its sides read from outside, as `if` and `else`; then what
// that has made possible. A loop is emitted where its start stands: its variables are set, its condition is the
// conditional whose one side ends in a jump back and whose other side is what comes behind the loop.
class Emitter {
 public:
  Emitter(CompileContext* context, RegionId function, FunctionSteps* steps);

  // False if no order was found. It then can't be compiled.
  bool Run();

 private:
  // A loop around what is emitted.
  struct OpenLoop {
    OpenLoop(int number, const FlowLoop* loop, LabelId begin) : number(number), loop(loop), begin(begin) {}

    int number;
    const FlowLoop* loop;
    LabelId begin;
    bool is_closed = false;
    std::map<int, Operand> exits;
  };

  bool HasFailed() const { return failed_ || writer_.misses_values(); }
  bool EmitBlock(BlockId block, const NodeSet& allowed);
  bool EmitNodes(BlockId block, const NodeSet& allowed);
  void Emit(NodeId id);
  void EmitReturn();

  // Conditionals.
  bool EmitConditional(BlockId block, const NodeSet& allowed);
  void EmitSides(BlockId block, const ConditionalPart& part);
  void EmitSide(BlockId block, int side, const ConditionalPart& part);
  void MoveToMerges(BlockId side, const std::vector<NodeId>& merges);

  // Loops.
  void EmitLoop(NodeId id);
  void EmitTest(BlockId block, const ConditionalPart& part);
  void EmitRepeat();
  NodeId TestOfLoop(BlockId block) const;
  void FailBehindLoop(BlockId block);

  const FlowGraph& flow_;
  Blocks& blocks_;
  const RegionId function_;
  FunctionSteps& steps_;
  StepWriter writer_;
  NodeEmitter node_emitter_;
  Schedule schedule_;
  std::map<int, Operand> results_;  // of the function, by index; some may be missing because nobody reads them
  std::vector<OpenLoop> loops_;     // innermost last
  int num_loops_ = 0;
  int nesting_ = 0;  // of conditionals
  bool failed_ = false;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_EMITTER_H_
