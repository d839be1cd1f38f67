// Calls on their way to being opened: arguments that come one by one, and calls that are opened without all of them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cc/executor/worker.h"
#include "cc/executor/worker_inline.h"

namespace tensorflow_recursion {
namespace {

// Gaps in the list of partial frames that are left alone: it mostly grows and shrinks at its end.
constexpr size_t kMostPartialGaps = 64;

}  // namespace

// Whether the device that decides on the call has said that it lives.
inline bool Worker::IsOpened(Frame* frame, const Op& op) {
  return !frame->values()[op.slot + op.num_inputs - 1].is_empty();
}

void Worker::DeliverSiteArgument(Frame* frame, const Edge& edge, Value value) {
  const Op& op = frame->region->ops[edge.op];
  uint16_t& pending = frame->pending()[edge.op];
  if (op.num_tokens > 1) {
    size_t dead = 0;  // that came before
    if (const PartialCall* odd = FindPartialCall(frame, edge.op); odd != nullptr) {
      if (odd->child != nullptr) {
        late_arguments_.push_back({odd->child, edge.index, value});
        if (--pending == 0) partial_calls_.erase({frame, edge.op});
        return;
      }
      dead = odd->dead.size() - value.is_dead();
    }
    // A call counts as partial from its first live argument on: dead ones alone must not open a frame. If another
    // device decides whether it lives, from when it has done so.
    const bool waits_for_announcement = program_.sites[op.index].waits_for_announcement;
    const bool was_partial = waits_for_announcement ? IsOpened(frame, op) : pending + dead < op.num_tokens;
    if (pending == 1) {
      if (was_partial && --frame->incomplete_sites == 0) UnlinkPartial(frame);
    } else if (!was_partial && !value.is_dead() && (!waits_for_announcement || edge.index + 1 == op.num_inputs)) {
      if (frame->incomplete_sites++ == 0) LinkPartial(frame);
    }
  }
  if (!value.is_dead()) value.CopyTo(&frame->values()[edge.slot]);
  if (value.owns()) frame->owns_tensors = 1;
  if (--pending > 0) return;
  PushCall(frame, edge.op);
}

PartialCall& Worker::MakePartialCall(Frame* caller, uint32_t op) {
  caller->has_partial_calls = 1;
  return partial_calls_[{caller, op}];
}

void Worker::ForgetPartialCalls(Frame* caller) {
  for (uint32_t i = 0; i < caller->region->num_counted; ++i) {
    if (caller->region->ops[i].kind == OpKind::kSite) partial_calls_.erase({caller, i});
  }
}

void Worker::LinkPartial(Frame* frame) {
  frame->partial_position = static_cast<uint32_t>(partial_.size());
  partial_.push_back(frame);
  ++frame->live;
}

void Worker::UnlinkPartial(Frame* frame) {
  partial_[frame->partial_position] = nullptr;
  ++partial_gaps_;
  for (; !partial_.empty() && partial_.back() == nullptr; --partial_gaps_) partial_.pop_back();
  if (ABSL_PREDICT_FALSE(partial_gaps_ > kMostPartialGaps && partial_gaps_ > partial_.size() / 2)) ClosePartialGaps();
  --frame->live;  // not the last: the caller holds another
}

void Worker::ClosePartialGaps() {
  partial_.erase(std::remove(partial_.begin(), partial_.end(), nullptr), partial_.end());
  for (uint32_t i = 0; i < partial_.size(); ++i) partial_[i]->partial_position = i;
  partial_gaps_ = 0;
}

// Nothing else moves: opens this frame's calls that have only some of their arguments.
void Worker::OpenPartialSites(Frame* frame) {
  ++frame->live;
  UnlinkPartial(frame);
  frame->incomplete_sites = 0;
  const Region& region = *frame->region;
  for (uint32_t i = 0; i < region.num_firing; ++i) {
    const Op& op = region.ops[i];
    if (op.kind != OpKind::kSite || op.num_tokens < 2) continue;
    const uint32_t pending = frame->pending()[i];
    const PartialCall* odd = FindPartialCall(frame, i);
    const bool is_open = odd != nullptr && odd->child != nullptr;
    const size_t dead = odd == nullptr ? 0 : odd->dead.size();
    const bool may_open =
        program_.sites[op.index].waits_for_announcement ? IsOpened(frame, op) : pending + dead < op.num_tokens;
    if (is_open || pending == 0 || !may_open) continue;
    ++frame->live;
    OpenSite(frame, i, nullptr);
  }
  Unref(frame);
}

}  // namespace tensorflow_recursion
