// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/step_writer.h"

#include "cc/values/scalar_operators.h"
#include "cc/values/scalar_ops.h"

namespace tensorflow_recursion {

void StepWriter::DefineAll(NodeId id, StepOperand value) {
  for (int port = 0; port < context_.flow.nodes[id].num_ports; ++port) Define(id, port, value);
}

StepOperand StepWriter::ValueOf(const Input& input) {
  if (input.is_constant()) return ValueOfConstant(input.constant);
  const auto value = values_.find({input.source.node, input.source.port});
  if (value != values_.end()) return value->second;
  misses_values_ = true;
  return {};
}

StepOperand StepWriter::ValueOfConstant(ConstantId id) {
  const ConstantTensor& constant = context_.flow.constants[id];
  if (constant.is_number()) return {kNone, ScalarFromTensor(constant.tensor).bits};
  if (constant.tensor.dtype() == tensorflow::DT_VARIANT) return {kNone, 0};  // a missing record
  const auto [position, is_new] = context_.arrays.try_emplace(id, 0);
  if (is_new) {
    context_.code->tensors.push_back(constant.tensor);
    position->second = ToBits(&context_.code->arrays.emplace_back(context_.code->tensors.back()));
  }
  return {kNone, position->second};
}

VirtualId StepWriter::Register(const StepOperand& operand) {
  if (!operand.is_constant()) return operand.value;
  Step& step = Add(Opcode::kConstant);
  step.constant = operand.constant;
  step.results = {NewVirtual()};
  return step.results[0];
}

Step& StepWriter::Add(Opcode opcode) {
  steps_.steps.emplace_back(opcode);
  steps_.steps.back().loop = loop_;
  return steps_.steps.back();
}

// Registers that get constants are written last, when all other moves have read what was in them.
void StepWriter::AddMoves(const std::vector<std::pair<VirtualId, StepOperand>>& moves) {
  Step move(Opcode::kMove);
  for (const auto& [to, from] : moves) {
    if (from.is_constant()) continue;
    move.results.push_back(to);
    move.operands.push_back(from.value);
  }
  if (!move.results.empty()) {
    Step& added = Add(Opcode::kMove);
    added.results = std::move(move.results);
    added.operands = std::move(move.operands);
  }
  for (const auto& [to, from] : moves) {
    if (!from.is_constant()) continue;
    Step& constant = Add(Opcode::kConstant);
    constant.constant = from.constant;
    constant.results = {to};
  }
}

}  // namespace tensorflow_recursion
