// SPDX-License-Identifier: Apache-2.0
#include "cc/program/slots.h"

#include <algorithm>
#include <utility>

namespace tensorflow_recursion {
namespace {

// In larger regions slots are not shared, because the sets of a history take space in proportion to the square.
constexpr size_t kMostNodes = 2000;
// A value that comes out of merges of merges may have come by many ways. Beyond so many a merge is taken as a whole.
constexpr size_t kMostWays = 8;

}  // namespace

// Slots of the root are not shared: it has one frame, so there would be little to gain.
SlotPlanner::SlotPlanner(const FlowGraph& flow, RegionId region, const std::vector<NodeId>& nodes)
    : flow_(flow), history_(flow, nodes), shares_(region != GraphRegions::kRoot && history_.num_nodes() <= kMostNodes) {
  if (shares_) history_.Compute();
}

void SlotPlanner::Sort(std::vector<SlotRequest>* requests) const {
  std::stable_sort(requests->begin(), requests->end(), [this](const SlotRequest& a, const SlotRequest& b) {
    return history_.PositionOf(a.node) < history_.PositionOf(b.node);
  });
}

// Appends what has happened when a value comes from `source`, for each way in which it may come. For example, a value
// that a merge hands on comes from either branch of a conditional, which are two ways.
void SlotPlanner::CollectWays(const Source& source, std::vector<FiredSet>* ways) const {
  std::vector<Source> sources = {source};
  for (size_t next = 0; next < sources.size(); ++next) {
    const FlowNode& from = flow_.nodes[sources[next].node];
    const bool is_merge = from.kind == OpKind::kMerge && from.controls.empty();
    if (!is_merge || sources.size() + from.inputs.size() > kMostWays) {
      ways->push_back(history_.Before(sources[next]));
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
  use.released = history_.Fired(request.node);
  if (item.kind == SlotRequest::Kind::kArgument) use.before.push_back(history_.BeforeAny(node));
  if (item.kind == SlotRequest::Kind::kGate) {
    use.before.push_back(history_.BeforeFired(node.branch));
    use.released = history_.Fired(node.branch);
  }
  use.needs_empty = item.kind != SlotRequest::Kind::kInput;
  use.leaves_empty = node.kind != OpKind::kScalar && node.kind != OpKind::kPiece;  // these leave the numbers they read
  return use;
}

// Whether the value of `first` has left its slot by the time that of `second` comes by this way.
bool SlotPlanner::Precedes(const Use& first, const Use& second, const FiredSet& way) const {
  return FiringHistory::Has(way, first.released) && (first.leaves_empty || !second.needs_empty);
}

bool SlotPlanner::NeverMeet(const Use& a, const Use& b) const {
  for (const FiredSet& to_a : a.before) {
    for (const FiredSet& to_b : b.before) {
      if (!history_.Exclude(to_a, to_b) && !Precedes(a, b, to_b) && !Precedes(b, a, to_a)) return false;
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

// Gives each use, none of which may share, a slot of its own without a search. Searches for them would make a large
// frame cost the square of its slots.
std::vector<uint32_t> SlotPlanner::PlaceBehind(std::vector<Use> uses) {
  std::vector<uint32_t> result;
  for (Use& use : uses) {
    result.push_back(num_slots());
    slots_.emplace_back().push_back(std::move(use));
  }
  return result;
}

// Places the slots of an operator side by side where that takes no more room, because it then reads its inputs where
// they are.
std::vector<uint32_t> SlotPlanner::Place(const SlotRequest& request) {
  std::vector<Use> uses;
  uses.reserve(request.items.size());
  for (const SlotRequest::Item& item : request.items) uses.push_back(UseOf(request, item));
  if (std::all_of(uses.begin(), uses.end(), [](const Use& use) { return use.released == 0; })) {
    return PlaceBehind(std::move(uses));
  }
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
