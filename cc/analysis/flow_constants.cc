// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/flow_constants.h"

#include <cstring>
#include <utility>

#include "cc/analysis/flow_sources.h"
#include "cc/analysis/node_facts.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.pb.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::GetNodeAttr;
using tensorflow::Node;
using tensorflow::Tensor;

// The value of a FakeParam, which nobody reads: zeros of its type and shape. A loop may put them into a list, which
// looks at their shape.
absl::Status MakeZeros(const Node* node, const DeviceMemory& memory, ConstantTensor* constant) {
  tensorflow::DataType dtype;
  tensorflow::PartialTensorShape known;
  tensorflow::TensorShape shape;  // a scalar's if the FakeParam does not know its own
  TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), "dtype", &dtype));
  TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), "shape", &known));
  known.AsTensorShape(&shape);
  Tensor zeros(dtype, shape);
  if (!zeros.IsInitialized()) {
    return InvalidArgument("Node '", node->name(), "': no memory for a tensor of its shape ", shape.DebugString());
  }
  const bool is_plain = DataTypeCanUseMemcpy(dtype);
  if (is_plain && zeros.TotalBytes() > 0) std::memset(zeros.data(), 0, zeros.TotalBytes());
  constant->tensor = zeros;
  if (constant->is_on_host || !is_plain) return absl::OkStatus();
  tensorflow::TensorProto proto;
  zeros.AsProtoField(&proto);
  return memory.Make(proto, &constant->tensor);
}

absl::Status ReadConstant(const Node* node, const DeviceMemory& memory, ConstantTensor* constant) {
  constant->is_on_host = memory.IsOnHost(*node, 0);
  if (!node->IsConstant()) return MakeZeros(node, memory, constant);
  const tensorflow::TensorProto* proto = nullptr;
  TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), "value", &proto));
  if (!constant->is_on_host) return memory.Make(*proto, &constant->tensor);
  if (constant->tensor.FromProto(*proto)) return absl::OkStatus();
  return InvalidArgument("Node '", node->name(), "': its value is not a valid tensor");
}

}  // namespace

absl::Status ConstantOf(FlowBuilder* builder, const Node* node, ConstantId* constant) {
  std::deque<ConstantTensor>& all = builder->flow->constants;
  auto [position, inserted] = builder->constants.try_emplace(node, ConstantId(all.size()));
  if (inserted) TFR_RETURN_IF_ERROR(ReadConstant(node, builder->memory, &all.emplace_back()));
  *constant = position->second;
  return absl::OkStatus();
}

absl::Status ConstantToken(FlowBuilder* builder, const Node* node, NodeId* token) {
  auto position = builder->constant_tokens.find(node);
  if (position == builder->constant_tokens.end()) {
    FlowNode pass(OpKind::kPass, builder->regions().region(node), node);
    pass.num_ports = 1;
    Input value;
    TFR_RETURN_IF_ERROR(ConstantOf(builder, node, &value.constant));
    TFR_RETURN_IF_ERROR(ResolveControls(builder, node, &value.guards));
    pass.inputs.push_back(std::move(value));
    position = builder->constant_tokens.emplace(node, builder->flow->nodes.Add(std::move(pass))).first;
  }
  *token = position->second;
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
