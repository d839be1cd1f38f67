// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/known_ranks.h"

#include <algorithm>
#include <string>

#include "cc/base/names.h"
#include "cc/bytecode/loop_variables.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow_recursion {
namespace {

// What is known spreads in both directions, mostly in two rounds. A longer chain of conclusions is not worth the time.
constexpr int kMostRankRounds = 10;

}  // namespace

KnownRanks::KnownRanks(const FlowGraph& flow, const ElementReads& reads) : flow_(flow), reads_(reads) {
  std::map<std::pair<RegionId, int>, NodeId> results;
  for (NodeId id : flow.nodes.ids()) {
    const FlowNode& node = flow.nodes[id];
    first_.Add(joined_.size());
    for (int i = 0; i <= node.num_ports; ++i) joined_.push_back(joined_.size());
    if (node.kind == OpKind::kResult) results[{node.region, static_cast<int>(node.index)}] = id;
  }
  ranks_.assign(joined_.size(), kUnknown);
  std::vector<NodeId> scalars;
  for (NodeId id : flow.nodes.ids()) {
    if (flow.nodes[id].is_removed) continue;
    JoinPorts(id);
    JoinSite(id, results);
    SetByKind(id);
    if (flow.nodes[id].kind == OpKind::kScalar) scalars.push_back(id);
  }
  JoinLoops();
  changed_ = true;
  for (int round = 0; changed_ && round < kMostRankRounds; ++round) {
    changed_ = false;
    for (NodeId id : scalars) Relate(id);
    std::reverse(scalars.begin(), scalars.end());
  }
}

int KnownRanks::RankOf(const Source& source) const { return ranks_[Root(ValueOf(source))]; }

int KnownRanks::RankOf(const Input& input) const {
  return input.is_constant() ? flow_.constants[input.constant].tensor.dims() : RankOf(input.source);
}

size_t KnownRanks::Root(size_t value) const {
  while (joined_[value] != value) value = joined_[value] = joined_[joined_[value]];
  return value;
}

void KnownRanks::Join(size_t a, size_t b) {
  a = Root(a);
  b = Root(b);
  if (a == b) return;
  joined_[a] = b;
  if (ranks_[b] == kUnknown) {
    ranks_[b] = ranks_[a];
  } else if (ranks_[a] != kUnknown && ranks_[a] != ranks_[b]) {
    ranks_[b] = kConflict;
  }
}

void KnownRanks::Join(const Input& input, const Source& target) {
  if (input.is_constant()) return Set(target, RankOf(input));
  Join(ValueOf(input.source), ValueOf(target));
}

void KnownRanks::Set(const Source& source, int rank) {
  int8_t& known = ranks_[Root(ValueOf(source))];
  if (known == rank || known == kConflict) return;
  known = known == kUnknown && rank <= INT8_MAX ? static_cast<int8_t>(rank) : kConflict;
  changed_ = true;
}

void KnownRanks::Set(const Input& input, int rank) {
  if (!input.is_constant()) Set(input.source, rank);
}

// --- What is handed on ------------------------------------------------------------------------------

void KnownRanks::JoinPorts(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  switch (node.kind) {
    case OpKind::kPass:
      for (int port = 0; port < node.num_ports && port < static_cast<int>(node.inputs.size()); ++port) {
        Join(node.inputs[port], {id, port});
      }
      return;
    case OpKind::kSwitch:
    case OpKind::kSwitchN:
      for (int port = 0; port < node.num_ports; ++port) Join(node.inputs[0], {id, port});
      return;
    case OpKind::kMerge:
      for (const Input& input : node.inputs) Join(input, {id, 0});
      return;
    case OpKind::kResult:
      return Join(node.inputs[0], {id, 0});
    default:
      return;
  }
}

void KnownRanks::JoinSite(NodeId id, const std::map<std::pair<RegionId, int>, NodeId>& results) {
  const FlowNode& node = flow_.nodes[id];
  if (node.kind != OpKind::kCallSite) return;
  const auto callee = flow_.functions.find(flow_.CalleeOf(node));
  if (callee == flow_.functions.end()) return;
  const std::vector<NodeId>& entries = callee->second.entries;
  for (size_t i = 0; i < node.inputs.size() && i < entries.size(); ++i) {
    if (entries[i] != kNone) Join(node.inputs[i], {entries[i], 0});
  }
  for (int port = 0; port < node.num_ports; ++port) {
    const auto result = results.find({callee->first, port});
    if (result != results.end()) Join(ValueOf({id, port}), ValueOf({result->second, 0}));
  }
}

void KnownRanks::JoinLoops() {
  for (const FlowLoop& loop : flow_.loops) {
    if (!IsSimpleLoop(flow_, loop)) continue;
    for (const LoopVariable& variable : VariablesOf(flow_, loop)) {
      Join(variable.start, {variable.entry, 0});
      if (variable.next) Join(*variable.next, {variable.entry, 0});
    }
  }
  for (NodeId id : flow_.nodes.ids()) {
    const FlowNode& node = flow_.nodes[id];
    if (node.kind != OpKind::kExit || node.is_removed) continue;
    Join(node.inputs[0], {flow_.FindLoop(node.region)->start, static_cast<int>(node.index)});
  }
}

// --- What is known at once --------------------------------------------------------------------------

void KnownRanks::SetByKind(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  switch (node.kind) {
    case OpKind::kEntry:
      return SetStated(id);
    case OpKind::kBranch:
      Set(node.inputs[0], 0);
      for (int port = 0; port < node.num_ports; ++port) Set(Source{id, port}, 0);
      return;
    case OpKind::kSwitchN:
      return Set(node.inputs[1], 0);
    case OpKind::kMerge:
      return Set(Source{id, 1}, 0);
    case OpKind::kKernel:
      return SetByKernel(id);
    case OpKind::kScalar:
      if (flow_.kernels[node.index].op == "EnsureShape") SetStated(id);
      if (flow_.kernels[node.index].op == "StridedSlice") SetIndices(id);
      return;
    default:
      return;
  }
}

void KnownRanks::SetStated(NodeId id) {
  tensorflow::PartialTensorShape shape;
  const auto attrs = flow_.nodes[id].node->attrs();
  if (attrs.Find(kShapeAttr) == nullptr || !tensorflow::GetNodeAttr(attrs, kShapeAttr, &shape).ok()) return;
  if (shape.dims() >= 0) Set(Source{id, 0}, shape.dims());
}

void KnownRanks::SetIndices(NodeId id) {
  const auto read = reads_.reads.find(id);
  if (read == reads_.reads.end()) return;
  for (const ElementIndex& index : read->second.indices) {
    if (!index.known) Set(index.input, 0);
  }
}

void KnownRanks::SetByKernel(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  const std::string& op = flow_.kernels[node.index].op;
  if (op == "Size" || op == "Rank") Set(Source{id, 0}, 0);
  if (op == "Shape") Set(Source{id, 0}, 1);
  if (op != "Range") return;
  for (const Input& input : node.inputs) Set(input, 0);
  Set(Source{id, 0}, 1);
}

// --- What follows from it ---------------------------------------------------------------------------

// Elementwise, a number comes of numbers, and of nothing else. That a Squeeze makes one of a tensor is not expected:
// `tf.cond` puts one around predicates of unknown shape.
void KnownRanks::Relate(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  if (const auto read = reads_.reads.find(id); read != reads_.reads.end()) return RelateRead(id, read->second);
  if (flow_.kernels[node.index].op == "GatherV2") return;
  const Source result{id, 0};
  if (IsNumber(result)) {
    for (const Input& input : node.inputs) Set(input, 0);
  }
  int highest = 0;
  for (const Input& input : node.inputs) {
    const int rank = RankOf(input);
    if (rank < 0) return;
    highest = std::max(highest, rank);
  }
  Set(result, highest);
}

void KnownRanks::RelateRead(NodeId id, const ElementRead& read) {
  const auto dims = static_cast<int>(read.indices.size());
  const Source result{id, 0};
  if (IsNumber(result)) {
    Set(read.array, dims);
    for (const ElementIndex& index : read.indices) {
      if (!index.known) Set(index.input, 0);
    }
    return;
  }
  for (const ElementIndex& index : read.indices) {
    if (!index.known && !IsNumber(index.input)) return;
  }
  const int rank = RankOf(read.array);
  if (rank >= dims) Set(result, rank - dims);
}

}  // namespace tensorflow_recursion
