// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/known_ranks.h"

#include <algorithm>
#include <string>

#include "cc/base/names.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow_recursion {
namespace {

// How many rounds are made at most. What is known spreads in both directions, mostly in two rounds. A longer chain of
// conclusions is not worth the time.
constexpr int kMostRankRounds = 10;

}  // namespace

KnownRanks::KnownRanks(const FlowGraph& flow, const ElementReads& reads)
    : flow_(flow), reads_(reads), classes_(flow), ranks_(classes_.size(), kUnknown) {
  JoinValues();
  std::vector<NodeId> scalars;
  for (NodeId id : flow.nodes.ids()) {
    if (flow.nodes[id].is_removed) continue;
    SetByKind(id);
    if (flow.nodes[id].kind == OpKind::kScalar) scalars.push_back(id);
  }
  changed_ = true;
  for (int round = 0; changed_ && round < kMostRankRounds; ++round) {
    changed_ = false;
    for (NodeId id : scalars) Relate(id);
    std::reverse(scalars.begin(), scalars.end());
  }
}

int KnownRanks::RankOf(const Source& source) const { return ranks_[classes_.Root(source)]; }

int KnownRanks::RankOf(const Input& input) const {
  return input.is_constant() ? flow_.constants[input.constant].tensor.dims() : RankOf(input.source);
}

void KnownRanks::JoinValues() {
  const HandOns hand_ons(flow_);
  const auto join = [this](const Input& from, const Source& to) { Join(from, to); };
  for (NodeId id : flow_.nodes.ids()) {
    if (!flow_.nodes[id].is_removed) hand_ons.VisitNode(id, join);
  }
  for (const FlowLoop& loop : flow_.loops) hand_ons.VisitLoop(loop, join);
}

void KnownRanks::Join(const Input& input, const Source& target) {
  if (input.is_constant()) return Set(target, RankOf(input));
  const size_t from = classes_.Root(input.source);
  const size_t to = classes_.Root(target);
  if (from == to) return;
  classes_.Join(from, to);
  if (ranks_[to] == kUnknown) {
    ranks_[to] = ranks_[from];
  } else if (ranks_[from] != kUnknown && ranks_[from] != ranks_[to]) {
    ranks_[to] = kConflict;
  }
}

void KnownRanks::Set(const Source& source, int rank) {
  int8_t& known = ranks_[classes_.Root(source)];
  if (known == rank || known == kConflict) return;
  known = known == kUnknown && rank <= INT8_MAX ? static_cast<int8_t>(rank) : kConflict;
  changed_ = true;
}

void KnownRanks::Set(const Input& input, int rank) {
  if (!input.is_constant()) Set(input.source, rank);
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

// An elementwise operator makes a number of numbers, and of nothing else. A Squeeze could make a number of a tensor,
// but is not expected to: `tf.cond` puts one around predicates of unknown shape, which are numbers.
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
