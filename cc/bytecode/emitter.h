// Turns the flow graph of a function's body into steps: the way from dataflow to an order.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_EMITTER_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_EMITTER_H_

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "cc/bytecode/blocks.h"
#include "cc/bytecode/code_builder.h"
#include "cc/bytecode/element_reads.h"
#include "cc/bytecode/steps.h"

namespace tensorflow_recursion {

// What all functions of a program share while they are compiled.
struct CompileContext {
  const FlowGraph& flow;
  const ElementReads& reads;
  Blocks* blocks;
  CodeBuilder* builder;
  Code* code;
  std::map<RegionId, std::vector<NodeId>> nodes;  // of each function, loops included, in the order of SortNodes()
  std::map<RegionId, int> functions;              // by region, as the code numbers them
  std::map<ConstantId, uint64_t> arrays;          // of constants, their addresses
};

// Emits nodes block by block. In a block, whatever has its inputs is emitted, in an order that computes arguments right
// before their call; then a conditional that has all that its sides read from outside, as `if` and `else`; then what
// that has made possible. A loop is emitted where its start stands: its variables are set, its condition is the
// conditional whose one side ends in a jump back and whose other side is what comes behind the loop.
class Emitter {
 public:
  Emitter(CompileContext* context, RegionId function);

  // False if no order was found. It then can't be compiled.
  bool Run(FunctionSteps* steps);

 private:
  // A value that is known: in a register, or as a constant.
  struct Operand {
    VirtualId value;
    uint64_t constant = 0;
    bool is_constant() const { return value == kNone; }
  };
  using NodeSet = std::set<NodeId>;

  // The order.
  void FindOrder();
  bool EmitBlock(BlockId block, const NodeSet& allowed);
  bool EmitNodes(BlockId block, const NodeSet& allowed);
  bool EmitConditional(BlockId block, const NodeSet& allowed);
  NodeSet PossibleIn(BlockId block, std::vector<NodeId>* part, const NodeSet& allowed, bool* has_all);
  void FindParts();
  bool IsReady(NodeId id, const NodeSet& also) const;
  void FailBehindLoop(BlockId block);
  bool IsTestOfLoop(BlockId block, NodeId branch) const;
  void EmitSides(BlockId block, NodeId branch, const NodeSet& possible);
  void EmitTest(BlockId block, NodeId branch, const NodeSet& possible);
  void EmitSide(BlockId block, NodeId branch, int side, const NodeSet& possible, const std::vector<NodeId>& merges);

  // Nodes.
  void Emit(NodeId id);
  void EmitOperator(NodeId id);
  void EmitRead(NodeId id, const ElementRead& read);
  bool EmitBinary(NodeId id, const KernelNode& kernel);
  bool EmitLogic(NodeId id, const KernelNode& kernel);
  void EmitApply(NodeId id, const KernelNode& kernel);
  void EmitCall(NodeId id);
  void EmitLoop(NodeId id);
  void EmitRepeat();
  void EmitReturn();

  // Values.
  Operand ValueOf(const Input& input);
  Operand ValueOfConstant(ConstantId constant);
  void Define(NodeId id, int port, Operand value) { values_[{id, port}] = value; }
  void DefineAll(NodeId id, Operand value);
  VirtualId Register(const Operand& operand);
  Step& Add(Opcode opcode);
  void AddMove(VirtualId to, const Operand& from);
  void AddMoves(const std::vector<std::pair<VirtualId, Operand>>& moves);
  void AddJump(LabelId label);
  void Bind(LabelId label);
  void AddKernel(Step* step, const FlowNode& node);

  CompileContext& context_;
  const FlowGraph& flow_;
  Blocks& blocks_;
  const RegionId function_;
  FunctionSteps* steps_ = nullptr;
  std::map<BlockId, std::vector<NodeId>> nodes_;  // of each block, in the order to try
  NodeSet all_;                                   // nodes of the function and its loops
  std::vector<NodeId> sorted_;                    // the same, each behind its sources
  // By the block that a conditional is in and its branch: what is on its sides, and its merges. In the order of
  // sorted_; what is emitted is taken out now and then.
  std::map<std::pair<BlockId, NodeId>, std::vector<NodeId>> parts_;
  NodeSet emitted_;
  std::map<std::pair<NodeId, int>, Operand> values_;  // by node and port
  std::map<int, Operand> results_;  // of the function, by index; some may be missing because nobody reads them
  struct OpenLoop {
    OpenLoop(int number, const FlowLoop* loop, LabelId begin) : number(number), loop(loop), begin(begin) {}

    int number;
    const FlowLoop* loop;
    LabelId begin;
    bool is_closed = false;
    std::map<int, Operand> exits;
  };
  std::vector<OpenLoop> loops_;  // around what is emitted, innermost last
  int num_loops_ = 0;
  int nesting_ = 0;  // of conditionals
  bool failed_ = false;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_EMITTER_H_
