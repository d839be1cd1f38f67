// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/register_types.h"

#include <algorithm>
#include <optional>

#include "cc/bytecode/neutral_nodes.h"
#include "cc/values/value.h"

namespace tensorflow_recursion {

using tensorflow::DataType;

RegisterTypes::RegisterTypes(const FlowGraph& flow, const ElementReads& reads)
    : flow_(flow), reads_(reads), hand_ons_(flow), classes_(flow), uses_(classes_.size(), Use::kNone) {}

void RegisterTypes::Mark(const Input& input, Use use) {
  if (!input.is_constant()) Mark(input.source, use);
}

void RegisterTypes::MarkClass(size_t root, Use use) {
  uses_[root] = static_cast<Use>(static_cast<uint8_t>(uses_[root]) | static_cast<uint8_t>(use));
}

void RegisterTypes::Join(const Input& input, const Source& target) {
  if (input.is_constant()) return Mark(target, UseOfConstant(input.constant));
  const size_t from = classes_.Root(input.source);
  const size_t to = classes_.Root(target);
  classes_.Join(from, to);
  MarkClass(to, uses_[from]);
}

void RegisterTypes::Find(const std::set<RegionId>& regions) {
  classes_.Separate();
  uses_.assign(classes_.size(), Use::kNone);
  conflicts_.clear();
  for (NodeId id : flow_.nodes.ids()) {
    if (regions.count(flow_.nodes[id].region) > 0 && !flow_.nodes[id].is_removed) Visit(id);
  }
  for (const FlowLoop& loop : flow_.loops) {
    if (regions.count(loop.region) == 0) continue;
    hand_ons_.VisitLoop(loop, [this](const Input& from, const Source& to) { Join(from, to); });
  }
  for (NodeId id : flow_.nodes.ids()) {
    if (regions.count(flow_.nodes[id].region) > 0) MarkUnread(id);
  }
  FindConflicts(regions);
}

// An argument that is read nowhere is taken for what its dtype makes likely.
void RegisterTypes::MarkUnread(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  if (node.kind != OpKind::kEntry || node.is_removed || uses_[classes_.Root({id, 0})] != Use::kNone) return;
  Mark(Source{id, 0}, IsUnboxed(node.node->output_type(0)) ? Use::kNumber : Use::kArray);
}

void RegisterTypes::Visit(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  if (const auto read = reads_.reads.find(id); read != reads_.reads.end()) {
    Mark(read->second.array, Use::kArray);
    for (const ElementIndex& index : read->second.indices) Mark(index.input, Use::kNumber);
    return Mark(Source{id, 0}, Use::kNumber);
  }
  hand_ons_.VisitNode(id, [this](const Input& from, const Source& to) { Join(from, to); });
  switch (node.kind) {
    case OpKind::kScalar:
      for (const Input& input : node.inputs) Mark(input, Use::kNumber);
      return Mark(Source{id, 0}, Use::kNumber);
    case OpKind::kBranch:
      Mark(node.inputs[0], Use::kNumber);
      for (int port = 0; port < 2; ++port) Mark(Source{id, port}, Use::kNumber);
      return;
    case OpKind::kSwitchN:
      return Mark(node.inputs[1], Use::kNumber);
    case OpKind::kRetain:
    case OpKind::kRecall:
      return VisitRecord(id);
    case OpKind::kKernel:
      return VisitKernel(id);
    default:
      return;
  }
}

// A record that compiled code makes or reads holds numbers and records.
void RegisterTypes::VisitRecord(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  const tensorflow::DataTypeVector& types = flow_.records[node.index].types;
  const bool is_retain = node.kind == OpKind::kRetain;
  for (size_t i = 0; i < types.size(); ++i) {
    if (is_retain) {
      Mark(node.inputs[i], UseOfKept(types[i]));
    } else {
      Mark(Source{id, static_cast<int>(i)}, UseOfKept(types[i]));
    }
  }
  if (is_retain) {
    Mark(Source{id, 0}, Use::kRecord);
  } else {
    Mark(node.inputs[0], Use::kRecord);
  }
}

RegisterTypes::Use RegisterTypes::UseOfKept(DataType dtype) {
  return dtype == tensorflow::DT_VARIANT ? Use::kRecord : Use::kNumber;
}

// A constant variant stands for a missing record: the branch that was not taken returns it, and nothing reads it.
RegisterTypes::Use RegisterTypes::UseOfConstant(ConstantId id) const {
  const ConstantTensor& constant = flow_.constants[id];
  if (constant.is_number()) return Use::kNumber;
  return constant.tensor.dtype() == tensorflow::DT_VARIANT ? Use::kRecord : Use::kArray;
}

void RegisterTypes::VisitKernel(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  if (MakesZeroRecord(flow_, node)) {
    Mark(node.inputs[0], Use::kRecord);
    return Mark(Source{id, 0}, Use::kRecord);
  }
  const std::optional<NeutralNode> neutral = NeutralNode::Find(flow_, node);
  if (!neutral) return;
  if (neutral->number) Mark(node.inputs[static_cast<size_t>(*neutral->number)], Use::kNumber);
  for (int i : neutral->shapes) Mark(node.inputs[static_cast<size_t>(i)], Use::kShape);
  for (int port = 0; port < node.num_ports; ++port) {
    Mark(Source{id, port}, neutral->gives_shapes ? Use::kShape : Use::kNumber);
  }
}

// Whether the value would have to be two things. A shape is in no register, so it can't be the result of a function.
bool RegisterTypes::IsConflict(NodeId id, int port) const {
  switch (uses_[classes_.Root({id, port})]) {
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

bool RegisterTypes::IsArray(const Source& source) const { return uses_[classes_.Root(source)] == Use::kArray; }

void RegisterTypes::FindConflicts(const std::set<RegionId>& regions) {
  for (NodeId id : flow_.nodes.ids()) {
    if (regions.count(flow_.nodes[id].region) == 0) continue;
    for (int port = 0; port <= flow_.nodes[id].num_ports; ++port) {
      if (IsConflict(id, port)) conflicts_.insert(flow_.nodes[id].region);
    }
  }
}

}  // namespace tensorflow_recursion
