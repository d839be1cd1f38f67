// Turns the flow graph of a function's body into steps, and so gives its nodes an order.
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

// Emits nodes block by block. In a block, first come the nodes that have their inputs, in an order that computes
// arguments right before their call. Then comes a conditional that has all that its sides read from outside, as `if`
// and `else`, and then what that has made possible. A loop comes where its start is: its variables are set, and its
// condition becomes a conditional whose one side ends in a jump back, while the other side goes on behind the loop.
class Emitter {
 public:
  Emitter(CompileContext* context, RegionId function, FunctionSteps* steps);

  // Returns false if no order was found. Then the function can't be compiled.
  bool Run();

 private:
  // A loop around what is being emitted. It is closed when its test has been emitted.
  struct OpenLoop {
    OpenLoop(int number, const FlowLoop* loop, LabelId begin) : number(number), loop(loop), begin(begin) {}

    int number;
    const FlowLoop* loop;
    LabelId begin;
    bool is_closed = false;
    std::map<int, StepOperand> exits;
  };

  bool HasFailed() const { return failed_ || writer_.misses_values(); }
  bool EmitBlock(BlockId block, const NodeSet& allowed);
  bool EmitNodes(BlockId block, const NodeSet& allowed);
  void Emit(NodeId id);
  void EmitReturn();

  // These emit conditionals.
  bool EmitConditional(BlockId block, const NodeSet& allowed);
  void EmitSides(BlockId block, const ConditionalPart& part);
  void EmitSide(BlockId block, int side, const ConditionalPart& part);
  void MoveToMerges(BlockId side, const std::vector<NodeId>& merges);

  // These emit loops.
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
  // The function's results, by index. Some may be missing, because nobody reads them.
  std::map<int, StepOperand> results_;
  // The innermost comes last.
  std::vector<OpenLoop> loops_;
  int num_loops_ = 0;
  // How many conditionals are around what is being emitted.
  int nesting_ = 0;
  bool failed_ = false;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_EMITTER_H_
