// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/node_emitter.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cc/base/names.h"
#include "cc/bytecode/neutral_nodes.h"
#include "cc/bytecode/operator_steps.h"
#include "cc/bytecode/record_steps.h"
#include "cc/values/record.h"
#include "cc/values/scalar_operators.h"

namespace tensorflow_recursion {

void NodeEmitter::Emit(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  switch (node.kind) {
    case OpKind::kScalar:
      return EmitOperator(id);
    case OpKind::kKernel:
      if (const auto read = context_.reads.reads.find(id); read != context_.reads.reads.end()) {
        return EmitRead(id, read->second);
      }
      return EmitNeutral(id);
    case OpKind::kPass:
      for (int port = 0; port < node.num_ports; ++port) writer_.Define(id, port, writer_.ValueOf(node.inputs[port]));
      return;
    case OpKind::kBranch:
    case OpKind::kSwitch:
    case OpKind::kSwitchN:
      return writer_.DefineAll(id, writer_.ValueOf(node.inputs[0]));
    case OpKind::kCallSite:
      return EmitCall(id);
    case OpKind::kRetain:
      return EmitRetain(id, &context_, &writer_);
    case OpKind::kRecall:
      return EmitRecall(id, &context_, &writer_);
    default:
      return;  // entries have their values already, and what only waits needs no steps
  }
}

// Emits no step, but defines the node's values. A node that packs indices is none of these, and gets no value: reads of
// elements take the indices one by one.
void NodeEmitter::EmitNeutral(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  if (MakesZeroRecord(flow_, node)) return writer_.Define(id, 0, {kNone, ToBits(Record::Zeros())});
  const std::optional<NeutralNode> neutral = NeutralNode::Find(flow_, node);
  if (!neutral) return;
  if (neutral->gives_shapes) return writer_.DefineAll(id, {});
  writer_.Define(id, 0, writer_.ValueOf(node.inputs[static_cast<size_t>(*neutral->number)]));
}

void NodeEmitter::EmitOperator(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  const KernelNode& kernel = flow_.kernels[node.index];
  if (const auto read = context_.reads.reads.find(id); read != context_.reads.reads.end()) {
    return EmitRead(id, read->second);
  }
  const bool keeps = kernel.op == "Squeeze" || kernel.op == "EnsureShape" ||
                     (kernel.op == "Cast" && kernel.inputs[0] == kernel.outputs[0]);
  if (keeps) return writer_.Define(id, 0, writer_.ValueOf(node.inputs[0]));
  if (kernel.op == "AddN") return EmitSum(id, kernel);
  if (!EmitBinary(id, kernel) && !EmitLogic(id, kernel)) EmitApply(id, kernel);
}

// Adds the terms of an AddN, one after the other. It never needs its kernel.
void NodeEmitter::EmitSum(NodeId id, const KernelNode& kernel) {
  const std::vector<Input>& terms = flow_.nodes[id].inputs;
  const Opcode add = FindBinaryInstructions("Add", kernel.inputs[0])->of_registers;
  StepOperand sum = writer_.ValueOf(terms[0]);
  for (size_t i = 1; i < terms.size(); ++i) {
    const VirtualId x = writer_.Register(sum);
    const VirtualId y = writer_.Register(writer_.ValueOf(terms[i]));
    Step& step = writer_.Add(add);
    step.operands = {x, y};
    step.results = {writer_.NewVirtual()};
    sum = {step.results[0]};
  }
  writer_.Define(id, 0, sum);
}

bool NodeEmitter::EmitBinary(NodeId id, const KernelNode& kernel) {
  const auto found = FindBinaryInstructions(kernel.op, kernel.inputs[0]);
  if (!found || kernel.inputs.size() != 2) return false;
  StepOperand x = writer_.ValueOf(flow_.nodes[id].inputs[0]);
  StepOperand y = writer_.ValueOf(flow_.nodes[id].inputs[1]);
  Opcode with_constant = found->with_constant;
  if (x.is_constant() && !y.is_constant() && (found->is_commutative || found->swapped)) {
    std::swap(x, y);
    if (found->swapped) with_constant = *found->swapped;
  }
  const VirtualId first = writer_.Register(x);
  const VirtualId second = y.is_constant() ? VirtualId() : writer_.Register(y);
  Step& step = writer_.Add(second == kNone ? with_constant : found->of_registers);
  step.operands = {first};
  if (second == kNone) {
    step.constant = y.constant;
  } else {
    step.operands.push_back(second);
  }
  step.results = {writer_.NewVirtual()};
  if (found->may_be_special) AddKernel(&step, flow_.nodes[id]);
  writer_.Define(id, 0, {step.results[0]});
  return true;
}

bool NodeEmitter::EmitLogic(NodeId id, const KernelNode& kernel) {
  static const auto* opcodes = new std::map<std::string, Opcode>{
      {"LogicalAnd", Opcode::kLogicalAnd}, {"LogicalOr", Opcode::kLogicalOr}, {"LogicalNot", Opcode::kLogicalNot}};
  const auto opcode = opcodes->find(kernel.op);
  if (opcode == opcodes->end()) return false;
  std::vector<VirtualId> operands;
  for (const Input& input : flow_.nodes[id].inputs) operands.push_back(writer_.Register(writer_.ValueOf(input)));
  Step& step = writer_.Add(opcode->second);
  step.operands = std::move(operands);
  step.results = {writer_.NewVirtual()};
  writer_.Define(id, 0, {step.results[0]});
  return true;
}

void NodeEmitter::EmitApply(NodeId id, const KernelNode& kernel) {
  std::vector<VirtualId> operands;
  for (const Input& input : flow_.nodes[id].inputs) operands.push_back(writer_.Register(writer_.ValueOf(input)));
  Step& step = writer_.Add(Opcode::kApply);
  step.operands = std::move(operands);
  step.target =
      context_.builder->Operator(kernel.op, FindScalarOperator(kernel.op, kernel.inputs, kernel.outputs).on_numbers);
  step.results = {writer_.NewVirtual()};
  AddKernel(&step, flow_.nodes[id]);
  writer_.Define(id, 0, {step.results[0]});
}

void NodeEmitter::EmitRead(NodeId id, const ElementRead& read) {
  std::vector<VirtualId> operands = {writer_.Register(writer_.ValueOf(read.array))};
  for (const ElementIndex& index : read.indices) {
    operands.push_back(writer_.Register(index.known ? StepOperand{kNone, *index.known} : writer_.ValueOf(index.input)));
  }
  Step& step = writer_.Add(Opcode::kElementAt);
  step.operands = std::move(operands);
  step.target = read.access.Encode();
  step.results = {writer_.NewVirtual()};
  // A Gather has a kernel for special cases. A StridedSlice has none here, because its kernel reads packed bounds,
  // which compiled code does not make: special cases then run in frames.
  if (flow_.nodes[id].kind == OpKind::kScalar) {
    AddKernel(&step, flow_.nodes[id]);
    step.kernel_operands[0] = {step.operands[0], 0, /*is_array=*/true};
  }
  writer_.Define(id, 0, {step.results[0]});
}

void NodeEmitter::AddKernel(Step* step, const FlowNode& node) {
  step->kernel = flow_.kernels[node.index].id;
  for (const Input& input : node.inputs) {
    const StepOperand operand = writer_.ValueOf(input);
    step->kernel_operands.push_back({operand.value, operand.constant, /*is_array=*/false});
  }
}

void NodeEmitter::EmitCall(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  const FlowCallSite& site = flow_.SiteOf(node);
  const RegionId callee = flow_.CalleeOf(node);
  std::vector<VirtualId> window;
  std::vector<std::pair<VirtualId, StepOperand>> moves;
  for (const Input& input : node.inputs) {
    window.push_back(writer_.NewVirtual(/*in_window=*/true));
    moves.emplace_back(window.back(), writer_.ValueOf(input));
  }
  writer_.AddMoves(moves);
  Step& call = writer_.Add(Opcode::kCall);
  call.operands = std::move(window);
  call.target = context_.functions.at(callee);
  call.site = site.name;
  call.callee = UserName(site.callee);
  const int num_results = flow_.functions.at(callee).num_results();
  std::vector<VirtualId> results;
  results.reserve(num_results);
  for (int i = 0; i < num_results; ++i) results.push_back(writer_.NewVirtual(/*in_window=*/num_results > 1));
  call.results = results;
  moves.clear();
  for (int i = 0; i < num_results; ++i) {
    const VirtualId kept = num_results > 1 ? writer_.NewVirtual() : results[i];
    if (num_results > 1) moves.emplace_back(kept, StepOperand{results[i]});
    writer_.Define(id, i, {kept});
  }
  writer_.AddMoves(moves);
}

}  // namespace tensorflow_recursion
