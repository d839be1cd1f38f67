// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/register_types.h"

#include <algorithm>
#include <optional>

#include "cc/bytecode/loop_variables.h"
#include "cc/bytecode/neutral_nodes.h"
#include "cc/values/value.h"

namespace tensorflow_recursion {

using tensorflow::DataType;

namespace {

bool IsNumber(const ConstantTensor& constant) {
  return constant.is_on_host && constant.tensor.dims() == 0 && IsUnboxed(constant.tensor.dtype());
}

}  // namespace

RegisterTypes::RegisterTypes(const FlowGraph& flow, const ElementReads& reads) : flow_(flow), reads_(reads) {
  for (const FlowNode& node : flow.nodes) {
    first_.Add(joined_.size());
    const size_t count = static_cast<size_t>(node.num_ports) + 1;  // a result has no port, but a value
    for (size_t i = 0; i < count; ++i) joined_.push_back(joined_.size());
  }
  uses_.assign(joined_.size(), Use::kNone);
  for (NodeId id : flow.nodes.ids()) {
    const FlowNode& node = flow.nodes[id];
    if (node.is_removed) continue;
    if (node.kind == OpKind::kResult) results_[{node.region, static_cast<int>(node.index)}] = id;
    if (node.kind == OpKind::kExit) exits_[node.region].push_back(id);
  }
}

NodeId RegisterTypes::ResultOf(RegionId region, int index) const {
  const auto position = results_.find({region, index});
  return position == results_.end() ? NodeId() : position->second;
}

size_t RegisterTypes::Root(size_t value) const {
  while (joined_[value] != value) value = joined_[value] = joined_[joined_[value]];
  return value;
}

void RegisterTypes::Mark(size_t value, Use use) {
  Use& all = uses_[Root(value)];
  all = static_cast<Use>(static_cast<uint8_t>(all) | static_cast<uint8_t>(use));
}

void RegisterTypes::Mark(const Input& input, Use use) {
  if (!input.is_constant()) Mark(ValueOf(input.source), use);
}

void RegisterTypes::Join(size_t a, size_t b) {
  a = Root(a);
  b = Root(b);
  if (a == b) return;
  joined_[a] = b;
  Mark(b, uses_[a]);
}

void RegisterTypes::Join(const Input& input, const Source& target) {
  if (input.is_constant()) {
    Mark(ValueOf(target), UseOfConstant(input.constant));
  } else {
    Join(ValueOf(input.source), ValueOf(target));
  }
}

void RegisterTypes::Find(const std::set<RegionId>& regions) {
  for (size_t i = 0; i < joined_.size(); ++i) joined_[i] = i;
  uses_.assign(joined_.size(), Use::kNone);
  conflicts_.clear();
  for (NodeId id : flow_.nodes.ids()) {
    if (regions.count(flow_.nodes[id].region) > 0 && !flow_.nodes[id].is_removed) Visit(id);
  }
  for (const FlowLoop& loop : flow_.loops) {
    if (regions.count(loop.region) > 0) VisitLoop(loop);
  }
  for (NodeId id : flow_.nodes.ids()) {
    if (regions.count(flow_.nodes[id].region) > 0) MarkUnread(id);
  }
  FindConflicts(regions);
}

// An argument that is nowhere read is what its dtype makes likely.
void RegisterTypes::MarkUnread(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  if (node.kind != OpKind::kEntry || node.is_removed || uses_[Root(ValueOf({id, 0}))] != Use::kNone) return;
  Mark(ValueOf({id, 0}), IsUnboxed(node.node->output_type(0)) ? Use::kNumber : Use::kArray);
}

void RegisterTypes::Visit(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  const auto hand_on = [&](size_t input, int port) { Join(node.inputs[input], {id, port}); };
  if (const auto read = reads_.reads.find(id); read != reads_.reads.end()) {
    Mark(read->second.array, Use::kArray);
    for (const ElementIndex& index : read->second.indices) Mark(index.input, Use::kNumber);
    return Mark(ValueOf({id, 0}), Use::kNumber);
  }
  switch (node.kind) {
    case OpKind::kScalar:
      for (const Input& input : node.inputs) Mark(input, Use::kNumber);
      return Mark(ValueOf({id, 0}), Use::kNumber);
    case OpKind::kBranch:
      Mark(node.inputs[0], Use::kNumber);
      for (int port = 0; port < 2; ++port) Mark(ValueOf({id, port}), Use::kNumber);
      return;
    case OpKind::kPass:
      for (int port = 0; port < node.num_ports; ++port) hand_on(static_cast<size_t>(port), port);
      return;
    case OpKind::kSwitchN:
      Mark(node.inputs[1], Use::kNumber);
      [[fallthrough]];
    case OpKind::kSwitch:
      for (int port = 0; port < node.num_ports; ++port) hand_on(0, port);
      return;
    case OpKind::kMerge:
      for (size_t i = 0; i < node.inputs.size(); ++i) hand_on(i, 0);
      return;
    case OpKind::kResult:
      return hand_on(0, 0);
    case OpKind::kCallSite:
      return VisitSite(id);
    case OpKind::kRetain:
    case OpKind::kRecall:
      return VisitRecord(id);
    case OpKind::kKernel:
      return VisitKernel(id);
    default:
      return;
  }
}

// A record that is compiled code's holds numbers and records.
void RegisterTypes::VisitRecord(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  const tensorflow::DataTypeVector& types = flow_.records[node.index].types;
  const bool is_retain = node.kind == OpKind::kRetain;
  for (size_t i = 0; i < types.size(); ++i) {
    if (is_retain) {
      Mark(node.inputs[i], UseOfKept(types[i]));
    } else {
      Mark(ValueOf({id, static_cast<int>(i)}), UseOfKept(types[i]));
    }
  }
  if (is_retain) {
    Mark(ValueOf({id, 0}), Use::kRecord);
  } else {
    Mark(node.inputs[0], Use::kRecord);
  }
}

RegisterTypes::Use RegisterTypes::UseOfKept(DataType dtype) {
  return dtype == tensorflow::DT_VARIANT ? Use::kRecord : Use::kNumber;
}

// A constant variant stands for one that nobody reads, in a branch: a record that is not there.
RegisterTypes::Use RegisterTypes::UseOfConstant(ConstantId id) const {
  const ConstantTensor& constant = flow_.constants[id];
  if (IsNumber(constant)) return Use::kNumber;
  return constant.tensor.dtype() == tensorflow::DT_VARIANT ? Use::kRecord : Use::kArray;
}

void RegisterTypes::VisitKernel(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  if (MakesZeroRecord(flow_, node)) {
    Mark(node.inputs[0], Use::kRecord);
    return Mark(ValueOf({id, 0}), Use::kRecord);
  }
  const std::optional<NeutralNode> neutral = NeutralNode::Find(flow_, node);
  if (!neutral) return;
  if (neutral->number) Mark(node.inputs[static_cast<size_t>(*neutral->number)], Use::kNumber);
  for (int i : neutral->shapes) Mark(node.inputs[static_cast<size_t>(i)], Use::kShape);
  for (int port = 0; port < node.num_ports; ++port) {
    Mark(ValueOf({id, port}), neutral->gives_shapes ? Use::kShape : Use::kNumber);
  }
}

// A shape is in no register, so it can't come out of a function.
bool RegisterTypes::IsConflict(NodeId id, int port) const {
  switch (uses_[Root(ValueOf({id, port}))]) {
    case Use::kNone:
    case Use::kNumber:
    case Use::kArray:
    case Use::kRecord:
      return false;
    case Use::kShape:
      return flow_.nodes[id].kind == OpKind::kResult;
    default:
      return true;
  }
}

void RegisterTypes::VisitSite(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  const auto callee = flow_.functions.find(flow_.CalleeOf(node));
  if (callee == flow_.functions.end()) return;
  const std::vector<NodeId>& entries = callee->second.entries;
  for (size_t i = 0; i < node.inputs.size() && i < entries.size(); ++i) {
    if (entries[i] != kNone) Join(node.inputs[i], {entries[i], 0});
  }
  for (int port = 0; port < node.num_ports; ++port) {
    const NodeId result = ResultOf(callee->first, port);
    if (result != kNone) Join(ValueOf({id, port}), ValueOf({result, 0}));
  }
}

void RegisterTypes::VisitLoop(const FlowLoop& loop) {
  for (const LoopVariable& variable : VariablesOf(flow_, loop)) {
    Join(variable.start, {variable.entry, 0});
    if (variable.next) Join(*variable.next, {variable.entry, 0});
  }
  const auto exits = exits_.find(loop.region);
  if (exits == exits_.end()) return;
  for (NodeId id : exits->second) {
    Join(flow_.nodes[id].inputs[0], {loop.start, static_cast<int>(flow_.nodes[id].index)});
  }
}

bool RegisterTypes::IsArray(const Source& source) const { return uses_[Root(ValueOf(source))] == Use::kArray; }

void RegisterTypes::FindConflicts(const std::set<RegionId>& regions) {
  for (NodeId id : flow_.nodes.ids()) {
    if (regions.count(flow_.nodes[id].region) == 0) continue;
    for (int port = 0; port <= flow_.nodes[id].num_ports; ++port) {
      if (IsConflict(id, port)) conflicts_.insert(flow_.nodes[id].region);
    }
  }
}

}  // namespace tensorflow_recursion
