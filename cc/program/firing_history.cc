// SPDX-License-Identifier: Apache-2.0
#include "cc/program/firing_history.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tensorflow_recursion {
namespace {

// Calls `visit` with what has fired before the node does. A gate waits for its branch. Any other switch reads the
// predicate by itself, and may do so first.
template <typename Visit>
void ForEachBefore(const FlowNode& node, Visit visit) {
  ForEachSource(node, visit);
  if (node.kind == OpKind::kGate) visit(Source{node.branch, Source::kWholeNode});
}

void Add(int bit, std::vector<uint64_t>* bits) { (*bits)[bit / 64] |= uint64_t{1} << (bit % 64); }

void Join(const std::vector<uint64_t>& other, std::vector<uint64_t>* bits) {
  for (size_t i = 0; i < bits->size(); ++i) (*bits)[i] |= other[i];
}

}  // namespace

FiringHistory::FiringHistory(const FlowGraph& flow, std::vector<NodeId> members)
    : flow_(flow), members_(std::move(members)), position_(members_.size(), 0) {
  std::sort(members_.begin(), members_.end());
  const auto is_branch = [&](NodeId id) { return flow.nodes[id].kind == OpKind::kBranch; };
  std::copy_if(members_.begin(), members_.end(), std::back_inserter(branches_), is_branch);
}

// Visits each node after all its sources, and computes what has happened when it fires. Nodes form no cycle. (This is
// Kahn's algorithm. SortNodes, which does the same, sorts whole graphs, and does not know that gates wait for their
// branches.)
void FiringHistory::Compute() {
  std::vector<int> waiting(members_.size(), 0);
  std::vector<std::vector<NodeId>> readers(members_.size());
  std::vector<NodeId> order;
  for (NodeId node : members_) {
    ForEachBefore(flow_.nodes[node], [&](const Source& source) {
      ++waiting[Local(node)];
      readers[Local(source.node)].push_back(node);
    });
    if (waiting[Local(node)] == 0) order.push_back(node);
  }
  happened_.assign(members_.size(), FiredSet((3 * members_.size() + 64) / 64, 0));
  for (size_t next = 0; next < order.size(); ++next) {
    position_[Local(order[next])] = static_cast<int>(next);
    ComputeNode(order[next]);
    for (NodeId reader : readers[Local(order[next])]) {
      if (--waiting[Local(reader)] == 0) order.push_back(reader);
    }
  }
}

void FiringHistory::ComputeNode(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  FiredSet& bits = happened_[Local(id)];
  switch (node.kind) {
    case OpKind::kUnion:  // comes dead or alive
      return;
    case OpKind::kMerge:
      bits = BeforeAny(node);
      for (const Source& control : node.controls) Join(Before(control), &bits);
      return;
    case OpKind::kCallSite:
      bits = BeforeAny(node);
      break;
    default:
      if (node.is_partial) {
        bits = BeforeAny(node);
      } else {
        ForEachBefore(node, [&](const Source& source) { Join(Before(source), &bits); });
      }
  }
  Add(Fired(id), &bits);
}

FiringHistory::FiredSet FiringHistory::Before(const Source& source) const {
  const FlowNode& from = flow_.nodes[source.node];
  FiredSet bits = happened_[Local(source.node)];
  if (source.port == Source::kWholeNode) return bits;
  if (from.kind == OpKind::kBranch) Add(Side(source.node, source.port), &bits);
  if (from.kind == OpKind::kGate || from.kind == OpKind::kSwitch) {
    Add(Side(from.branch, source.port), &bits);
  }
  return bits;
}

FiringHistory::FiredSet FiringHistory::BeforeAny(const FlowNode& node) const {
  FiredSet all;
  for (const Input& input : node.inputs) {
    if (!input.is_token()) continue;
    const FiredSet bits = Before(input.source);
    if (all.empty()) all = bits;
    for (size_t i = 0; i < all.size(); ++i) all[i] &= bits[i];
  }
  return all.empty() ? FiredSet(happened_.front().size(), 0) : all;
}

FiringHistory::FiredSet FiringHistory::BeforeFired(NodeId node) const {
  FiredSet bits = happened_[Local(node)];
  bits[Fired(node) / 64] &= ~(uint64_t{1} << (Fired(node) % 64));
  return bits;
}

bool FiringHistory::Exclude(const FiredSet& a, const FiredSet& b) const {
  return std::any_of(branches_.begin(), branches_.end(), [&](NodeId branch) {
    return (Has(a, Side(branch, 0)) && Has(b, Side(branch, 1))) || (Has(a, Side(branch, 1)) && Has(b, Side(branch, 0)));
  });
}

}  // namespace tensorflow_recursion
