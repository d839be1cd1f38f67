// Turns single nodes into steps: operators, reads of elements, calls.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_NODE_EMITTER_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_NODE_EMITTER_H_

#include "cc/analysis/flow_graph.h"
#include "cc/bytecode/compile_context.h"
#include "cc/bytecode/element_reads.h"
#include "cc/bytecode/step_writer.h"
#include "cc/bytecode/steps.h"

namespace tensorflow_recursion {

// Emits nodes whose steps depend on nothing but the values that they read. The Emitter does conditionals, loops and
// results itself, because for these the place matters, too.
class NodeEmitter {
 public:
  NodeEmitter(CompileContext* context, StepWriter* writer)
      : context_(*context), flow_(context->flow), writer_(*writer) {}

  // Writes the steps of a node whose inputs are known, and defines its values.
  void Emit(NodeId id);

 private:
  void EmitNeutral(NodeId id);
  void EmitOperator(NodeId id);
  void EmitRead(NodeId id, const ElementRead& read);
  bool EmitBinary(NodeId id, const KernelNode& kernel);
  bool EmitLogic(NodeId id, const KernelNode& kernel);
  void EmitSum(NodeId id, const KernelNode& kernel);
  void EmitApply(NodeId id, const KernelNode& kernel);
  void EmitCall(NodeId id);
  void AddKernel(Step* step, const FlowNode& node);

  CompileContext& context_;
  const FlowGraph& flow_;
  StepWriter& writer_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_NODE_EMITTER_H_
