// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/flow_nodes.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cc/analysis/effects.h"
#include "cc/analysis/flow_builder.h"
#include "cc/analysis/flow_sources.h"
#include "cc/analysis/node_facts.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::GetNodeAttr;
using tensorflow::Node;

constexpr int64_t kMaxBoundaryIndex = 0xffffff;

// How much memory an asynchronous kernel holds while it runs, as measured: its context, and what the rendezvous keeps
// for a receive. A receive from another process also holds a remote call.
constexpr int64_t kInFlightBytes = 2 << 10;
constexpr int64_t kRemoteReceiveBytes = 16 << 10;

// Whether the node needs its kernel because of its attributes, as the executor's own arithmetic would not do the same:
// - An EnsureShape may ask for something else than a scalar.
// - A Squeeze of given dimensions fails on a scalar. One without dimensions, which conditionals put around predicates
//   of unknown shape, hands a scalar on.
// - A Cast may be told to truncate where ours rounds.
// - A GatherV2 of a batch reads no single element.
bool NeedsKernel(const Node* node) {
  tensorflow::PartialTensorShape shape;
  if (Is(node, "EnsureShape") && GetNodeAttr(node->attrs(), "shape", &shape).ok()) return shape.dims() > 0;
  std::vector<int32_t> dimensions;
  if (GetNodeAttr(node->attrs(), "squeeze_dims", &dimensions).ok()) return !dimensions.empty();
  bool truncate = false;
  if (GetNodeAttr(node->attrs(), "Truncate", &truncate).ok()) return truncate;
  int64_t batch_dims = 0;
  return GetNodeAttr(node->attrs(), "batch_dims", &batch_dims).ok() && batch_dims != 0;
}

bool ComesFromOtherProcess(const Node* node) {
  std::string from, to;
  if (!node->IsRecv() || !GetNodeAttr(node->attrs(), "send_device", &from).ok() ||
      !GetNodeAttr(node->attrs(), "recv_device", &to).ok()) {
    return false;
  }
  tensorflow::DeviceNameUtils::ParsedName source, target;
  return tensorflow::DeviceNameUtils::ParseFullName(from, &source) &&
         tensorflow::DeviceNameUtils::ParseFullName(to, &target) &&
         !tensorflow::DeviceNameUtils::IsSameAddressSpace(source, target);
}

// Whether an Entry's values are never tensors of their own.
bool IsNumber(const Node& entry, const DeviceMemory& memory) {
  tensorflow::PartialTensorShape shape;
  return IsUnboxed(entry.output_type(0)) && memory.IsOnHost(entry, 0) &&
         GetNodeAttr(entry.attrs(), kShapeAttr, &shape).ok() && shape.dims() == 0;
}

FlowNode NewNode(const FlowBuilder& builder, const Node* node, OpKind kind, int num_ports, int64_t index = 0) {
  FlowNode made(kind, builder.regions().region(node), node);
  made.num_ports = num_ports;
  made.index = static_cast<uint32_t>(index);
  return made;
}

absl::Status MakeEntry(FlowBuilder* builder, const Node* node) {
  FlowGraph& flow = *builder->flow;
  int64_t index = 0;
  TFR_RETURN_IF_ERROR(ReadInteger(node, kIndexAttr, &index));
  std::vector<NodeId>& entries = flow.functions[flow.regions.region(node)].entries;
  if (index < 0 || index > kMaxIndex) {
    return InvalidArgument("Node '", node->name(), "': argument index ", index, " is out of range");
  }
  if (static_cast<int64_t>(entries.size()) <= index) entries.resize(index + 1);
  if (entries[index] != kNone) {
    return InvalidArgument("Node '", node->name(), "': argument ", index, " has an entry already, '",
                           flow.nodes[entries[index]].node->name(), "'");
  }
  FlowNode entry = NewNode(*builder, node, OpKind::kEntry, 1, index);
  entry.is_number = IsNumber(*node, builder->memory);
  entries[index] = builder->Add(node, std::move(entry));
  return absl::OkStatus();
}

absl::Status MakeFrameStart(FlowBuilder* builder, const Node* node) {
  const RegionId region = builder->regions().region(node);
  FlowFunction& function = builder->flow->functions[region];
  if (function.frame_start != kNone) {
    return InvalidArgument("Node '", node->name(), "': '", builder->regions().regions()[region].name,
                           "' has a FrameStart already");
  }
  function.frame_start = builder->Add(node, NewNode(*builder, node, OpKind::kFrameStart, 1));
  return absl::OkStatus();
}

absl::Status MakeResult(FlowBuilder* builder, const Node* node) {
  const RegionId region = builder->regions().region(node);
  int64_t index = 0;
  TFR_RETURN_IF_ERROR(ReadInteger(node, kIndexAttr, &index));
  std::string function;
  TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), kFunctionAttr, &function));
  if (region != builder->regions().FindFunction(function) || index < 0 || index > kMaxIndex) {
    return InvalidArgument("Node '", node->name(), "': result ", index, " of '", function,
                           "' does not belong to its body");
  }
  if (!builder->flow->functions[region].results.emplace(static_cast<int>(index), node).second) {
    return InvalidArgument("Node '", node->name(), "': result ", index, " of '", function, "' is given already");
  }
  builder->Add(node, NewNode(*builder, node, OpKind::kResult, 0, index));
  return absl::OkStatus();
}

void MakeExit(FlowBuilder* builder, const Node* node) {
  const std::vector<const Node*>& exits = builder->flow->FindLoop(builder->regions().region(node))->exits;
  const auto index = std::find(exits.begin(), exits.end(), node) - exits.begin();
  builder->Add(node, NewNode(*builder, node, OpKind::kExit, 0, index));
}

// Makes a node for an _Arg or a _Retval, through which a value comes into the program or leaves it.
absl::Status MakeBoundary(FlowBuilder* builder, const Node* node) {
  const bool is_argument = node->IsArg();
  int64_t index = 0;
  TFR_RETURN_IF_ERROR(ReadInteger(node, kIndexAttr, &index));
  if (builder->regions().region(node) != GraphRegions::kRoot) {
    return InvalidArgument("Node '", node->name(), "' stands inside a function's body");
  }
  if (index < 0 || index > kMaxBoundaryIndex) {
    return InvalidArgument("Node '", node->name(), "': index ", index, " is out of range");
  }
  builder->Add(node, is_argument ? NewNode(*builder, node, OpKind::kArgument, 1, index)
                                 : NewNode(*builder, node, OpKind::kRetval, 0, index));
  auto& types = is_argument ? builder->flow->argument_types : builder->flow->retval_types;
  if (static_cast<int64_t>(types.size()) <= index) types.resize(index + 1, tensorflow::DT_INVALID);
  types[index] = is_argument ? node->output_type(0) : node->input_type(0);
  return absl::OkStatus();
}

// Makes a node for a Retain or a Recall, which the executor does without a kernel.
absl::Status MakeRecord(FlowBuilder* builder, const Node* node) {
  const bool is_retain = Is(node, kRetainOp);
  std::vector<RecordType>& records = builder->flow->records;
  RecordType record;
  record.name = node->name();
  TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), kFunctionAttr, &record.function));
  record.function = UserName(record.function);
  record.types = is_retain ? node->input_types() : node->output_types();
  builder->Add(node, NewNode(*builder, node, is_retain ? OpKind::kRetain : OpKind::kRecall, node->num_outputs(),
                             static_cast<int64_t>(records.size())));
  records.push_back(std::move(record));
  return absl::OkStatus();
}

void MakeKernel(FlowBuilder* builder, const Node* node) {
  std::vector<KernelNode>& kernels = builder->flow->kernels;
  KernelNode kernel;
  kernel.id = static_cast<int>(kernels.size());
  kernel.node = node;
  kernel.name = node->name();
  kernel.op = node->type_string();
  kernel.in_flight_bytes = ComesFromOtherProcess(node) ? kRemoteReceiveBytes : kInFlightBytes;
  for (int i = 0; i < node->num_inputs(); ++i) kernel.inputs.push_back(node->input_type(i));
  for (int i = 0; i < node->num_outputs(); ++i) kernel.outputs.push_back(node->output_type(i));
  kernel.is_on_host = builder->memory.IsOnHost(*node);
  kernel.changes_input = ChangesInput(*node, builder->graph.flib_def());
  FlowNode made = NewNode(*builder, node, OpKind::kKernel, node->num_outputs(), kernel.id);
  if (!NeedsKernel(node) && kernel.is_on_host) {
    made.scalar = FindScalarFunction(kernel.op, kernel.inputs, kernel.outputs);
  }
  made.may_be_dead = node->IsRecv();
  if (made.scalar != nullptr) made.kind = OpKind::kScalar;
  if (node->IsSend()) made.kind = OpKind::kSend;
  kernels.push_back(std::move(kernel));
  builder->Add(node, std::move(made));
}

// Whether the node gets no flow node of its own here: it is part of a call site, or its readers read something else in
// its place, such as a constant, the value that the node renames, or an entry of its loop.
bool NeedsNoNode(const FlowBuilder& builder, const Node* node) {
  if (builder.regions().region(node) == kNone || IsCallSitePart(node)) return true;
  if (node->IsEnter() || HoldsConstant(node) || IsAlias(builder, node) || IsPredicateSwitch(builder, node)) return true;
  const FlowLoop* const loop = builder.flow->FindLoop(builder.regions().region(node));
  return node->IsMerge() && loop != nullptr && loop->entries.count(node) > 0;
}

// The flow node for a Switch, a Merge, or a node that only joins or hands on; nullopt for any other node.
std::optional<FlowNode> ControlFlowNode(const FlowBuilder& builder, const Node* node) {
  if (IsSwitchN(node)) return NewNode(builder, node, OpKind::kSwitchN, node->num_outputs());  // an IsSwitch() as well
  if (node->IsSwitch()) return NewNode(builder, node, OpKind::kSwitch, 2);
  if (node->IsMerge()) return NewNode(builder, node, OpKind::kMerge, 2);
  if (Is(node, "ControlTrigger")) return NewNode(builder, node, OpKind::kUnion, 0);
  if (Is(node, "NoOp")) return NewNode(builder, node, OpKind::kPass, 0);
  const bool is_identity = YieldsItsInput(builder, node) || Is(node, "IdentityN");
  if (is_identity && !ReadsReference(node)) return NewNode(builder, node, OpKind::kPass, node->num_outputs());
  return std::nullopt;
}

absl::Status MakeNode(FlowBuilder* builder, const Node* node) {
  if (Is(node, kEntryOp)) return MakeEntry(builder, node);
  if (Is(node, kRetainOp) || Is(node, kRecallOp)) return MakeRecord(builder, node);
  if (NeedsNoNode(*builder, node)) return absl::OkStatus();
  if (Is(node, kFrameStartOp)) return MakeFrameStart(builder, node);
  if (Is(node, kResultOp)) return MakeResult(builder, node);
  if (node->IsArg() || node->IsRetval()) return MakeBoundary(builder, node);
  if (node->IsExit()) {
    MakeExit(builder, node);
  } else if (std::optional<FlowNode> made = ControlFlowNode(*builder, node)) {
    builder->Add(node, *std::move(made));
  } else {
    MakeKernel(builder, node);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MakeNodes(FlowBuilder* builder) {
  for (const Node* node : builder->graph.op_nodes()) {
    if (builder->regions().region(node) != kNone) TFR_RETURN_IF_ERROR(MakeNode(builder, node));
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
