// SPDX-License-Identifier: Apache-2.0
#include "cc/program/slots.h"

#include <algorithm>
#include <utility>

namespace tensorflow_recursion {
namespace {

// The sets below take space by the square of this.
constexpr size_t kMostNodes = 2000;
// A value that comes out of merges of merges may have come by many ways.
constexpr size_t kMostWays = 8;

// Calls `visit` with what has fired before the node does. A gate waits for its branch. Any other switch reads the
// predicate by itself, and may do so first.
template <typename Visit>
void ForEachBefore(const FlowNode& node, Visit visit) {
  ForEachSource(node, visit);
  if (node.kind == OpKind::kGate) visit(Source{node.branch, Source::kWholeNode});
}

bool Has(const std::vector<uint64_t>& bits, int bit) { return ((bits[bit / 64] >> (bit % 64)) & 1) != 0; }

void Add(int bit, std::vector<uint64_t>* bits) { (*bits)[bit / 64] |= uint64_t{1} << (bit % 64); }

void Join(const std::vector<uint64_t>& other, std::vector<uint64_t>* bits) {
  for (size_t i = 0; i < bits->size(); ++i) (*bits)[i] |= other[i];
}

}  // namespace

SlotPlanner::SlotPlanner(const FlowGraph& flow, RegionId region) : flow_(flow) {
  local_.assign(flow.nodes.size(), -1);
  position_.assign(flow.nodes.size(), 0);
  for (NodeId id : flow.nodes.ids()) {
    const FlowNode& node = flow.nodes[id];
    if (node.region != region || node.is_removed) continue;
    local_[id] = static_cast<int>(members_.size());
    members_.push_back(id);
    if (node.kind == OpKind::kBranch) branches_.push_back(id);
  }
  // The root has one frame.
  shares_ = region != GraphRegions::kRoot && members_.size() <= kMostNodes;
  if (shares_) Order();
}

// Kahn's algorithm, as nodes form no cycle; computes on the way what has happened when each fires.
void SlotPlanner::Order() {
  std::vector<int> waiting(members_.size(), 0);
  std::vector<std::vector<NodeId>> readers(members_.size());
  std::vector<NodeId> order;
  for (NodeId node : members_) {
    ForEachBefore(flow_.nodes[node], [&](const Source& source) {
      ++waiting[local_[node]];
      readers[local_[source.node]].push_back(node);
    });
    if (waiting[local_[node]] == 0) order.push_back(node);
  }
  happened_.assign(members_.size(), Bits((3 * members_.size() + 64) / 64, 0));
  for (size_t next = 0; next < order.size(); ++next) {
    position_[order[next]] = static_cast<int>(next);
    Compute(order[next]);
    for (NodeId reader : readers[local_[order[next]]]) {
      if (--waiting[local_[reader]] == 0) order.push_back(reader);
    }
  }
}

void SlotPlanner::Compute(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  Bits& bits = happened_[local_[id]];
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

// What has happened when a value comes from `source`.
SlotPlanner::Bits SlotPlanner::Before(const Source& source) const {
  const FlowNode& from = flow_.nodes[source.node];
  Bits bits = happened_[local_[source.node]];
  if (source.port == Source::kWholeNode) return bits;
  if (from.kind == OpKind::kBranch) Add(Side(source.node, source.port), &bits);
  if (from.kind == OpKind::kGate || from.kind == OpKind::kSwitch) {
    Add(Side(from.branch, source.port), &bits);
  }
  return bits;
}

// What has happened when any of the node's inputs has come.
SlotPlanner::Bits SlotPlanner::BeforeAny(const FlowNode& node) const {
  Bits all;
  for (const Input& input : node.inputs) {
    if (input.is_constant()) continue;
    const Bits bits = Before(input.source);
    if (all.empty()) all = bits;
    for (size_t i = 0; i < all.size(); ++i) all[i] &= bits[i];
  }
  return all.empty() ? Bits(happened_.front().size(), 0) : all;
}

SlotPlanner::Bits SlotPlanner::BeforeFired(NodeId node) const {
  Bits bits = happened_[local_[node]];
  bits[Fired(node) / 64] &= ~(uint64_t{1} << (Fired(node) % 64));
  return bits;
}

void SlotPlanner::Sort(std::vector<SlotRequest>* requests) const {
  std::stable_sort(requests->begin(), requests->end(), [this](const SlotRequest& a, const SlotRequest& b) {
    return position_[a.node] < position_[b.node];
  });
}

// What has happened when a value comes from `source`, for each input of the merges that it passed last.
void SlotPlanner::CollectWays(const Source& source, std::vector<Bits>* ways) const {
  std::vector<Source> sources = {source};
  for (size_t next = 0; next < sources.size(); ++next) {
    const FlowNode& from = flow_.nodes[sources[next].node];
    const bool is_merge = from.kind == OpKind::kMerge && from.controls.empty();
    if (!is_merge || sources.size() + from.inputs.size() > kMostWays) {
      ways->push_back(Before(sources[next]));
    } else {
      for (const Input& input : from.inputs) sources.push_back(input.source);
    }
  }
}

SlotPlanner::Use SlotPlanner::UseOf(const SlotRequest& request, const SlotRequest::Item& item) const {
  Use use;
  if (item.kind == SlotRequest::Kind::kAlone || !shares_) return use;
  const FlowNode& node = flow_.nodes[request.node];
  CollectWays(node.inputs[item.input].source, &use.before);
  use.released = Fired(request.node);
  if (item.kind == SlotRequest::Kind::kArgument) use.before.push_back(BeforeAny(node));
  if (item.kind == SlotRequest::Kind::kGate) {
    use.before.push_back(BeforeFired(node.branch));
    use.released = Fired(node.branch);
  }
  use.needs_empty = item.kind != SlotRequest::Kind::kInput;
  use.leaves_empty = node.kind != OpKind::kScalar;  // that leaves the numbers it read
  return use;
}

// Whether `first` has gone when `second` comes by this way.
bool SlotPlanner::Precedes(const Use& first, const Use& second, const Bits& way) const {
  return Has(way, first.released) && (first.leaves_empty || !second.needs_empty);
}

bool SlotPlanner::Exclude(const Bits& a, const Bits& b) const {
  return std::any_of(branches_.begin(), branches_.end(), [&](NodeId branch) {
    return (Has(a, Side(branch, 0)) && Has(b, Side(branch, 1))) || (Has(a, Side(branch, 1)) && Has(b, Side(branch, 0)));
  });
}

bool SlotPlanner::NeverMeet(const Use& a, const Use& b) const {
  for (const Bits& to_a : a.before) {
    for (const Bits& to_b : b.before) {
      if (!Exclude(to_a, to_b) && !Precedes(a, b, to_b) && !Precedes(b, a, to_a)) return false;
    }
  }
  return true;
}

bool SlotPlanner::MayShare(uint32_t slot, const Use& use) const {
  if (slot >= slots_.size()) return true;
  if (use.released == 0) return false;
  return std::all_of(slots_[slot].begin(), slots_[slot].end(),
                     [&](const Use& other) { return other.released != 0 && NeverMeet(other, use); });
}

std::vector<uint32_t> SlotPlanner::PlaceApart(const std::vector<Use>& uses) const {
  std::vector<uint32_t> result;
  for (const Use& use : uses) {
    uint32_t slot = 0;
    while (!MayShare(slot, use) || std::count(result.begin(), result.end(), slot) > 0) ++slot;
    result.push_back(slot);
  }
  return result;
}

std::vector<uint32_t> SlotPlanner::PlaceTogether(const std::vector<Use>& uses) const {
  uint32_t first = 0;
  auto fits = [&] {
    for (uint32_t i = 0; i < uses.size(); ++i) {
      if (!MayShare(first + i, uses[i])) return false;
    }
    return true;
  };
  while (!fits()) ++first;
  std::vector<uint32_t> result(uses.size());
  for (uint32_t i = 0; i < uses.size(); ++i) result[i] = first + i;
  return result;
}

// Together where that takes no more room: an operator then reads its inputs where they are.
std::vector<uint32_t> SlotPlanner::Place(const SlotRequest& request) {
  std::vector<Use> uses;
  for (const SlotRequest::Item& item : request.items) uses.push_back(UseOf(request, item));
  std::vector<uint32_t> result = PlaceTogether(uses);
  auto end_of = [](const std::vector<uint32_t>& slots) {
    return slots.empty() ? 0 : *std::max_element(slots.begin(), slots.end()) + 1;
  };
  if (!request.is_block && end_of(result) > num_slots()) {
    std::vector<uint32_t> apart = PlaceApart(uses);
    if (end_of(apart) < end_of(result)) result = std::move(apart);
  }
  if (end_of(result) > num_slots()) slots_.resize(end_of(result));
  for (size_t i = 0; i < uses.size(); ++i) slots_[result[i]].push_back(std::move(uses[i]));
  return result;
}

}  // namespace tensorflow_recursion
