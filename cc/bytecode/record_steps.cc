// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/record_steps.h"

#include <vector>

#include "cc/bytecode/steps.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {

// All values are put into registers before the record is made, so that nothing comes between the steps that fill it.
void EmitRetain(NodeId id, CompileContext* context, StepWriter* writer) {
  const FlowNode& node = context->flow.nodes[id];
  const RecordType& type = context->flow.records[node.index];
  std::vector<VirtualId> values;
  values.reserve(node.inputs.size());
  for (const Input& input : node.inputs) values.push_back(writer->Register(writer->ValueOf(input)));
  Step& make = writer->Add(Opcode::kMakeRecord);
  make.target = context->builder->Record(type);
  const VirtualId record = writer->NewVirtual();
  make.results = {record};
  for (size_t i = 0; i < values.size(); ++i) {
    const bool is_record = type.types[i] == tensorflow::DT_VARIANT;
    Step& keep = writer->Add(is_record ? Opcode::kKeepRecord : Opcode::kKeepNumber);
    keep.operands = {record, values[i]};
    keep.target = static_cast<int>(i);
  }
  writer->Define(id, 0, {record});
}

void EmitRecall(NodeId id, CompileContext* context, StepWriter* writer) {
  const FlowNode& node = context->flow.nodes[id];
  const VirtualId input = writer->Register(writer->ValueOf(node.inputs[0]));
  Step& open = writer->Add(Opcode::kOpenRecord);
  open.operands = {input};
  open.target = context->builder->Record(context->flow.records[node.index]);
  const VirtualId record = writer->NewVirtual();
  open.results = {record};
  for (int i = 0; i < node.num_ports; ++i) {
    Step& field = writer->Add(Opcode::kField);
    field.operands = {record};
    field.target = i;
    field.results = {writer->NewVirtual()};
    writer->Define(id, i, {field.results[0]});
  }
}

}  // namespace tensorflow_recursion
