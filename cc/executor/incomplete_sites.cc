// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/incomplete_sites.h"

#include <algorithm>

#include "absl/base/optimization.h"

namespace tensorflow_recursion {
namespace {

// So many gaps in the list are left alone, because it mostly grows and shrinks at its end.
constexpr size_t kMostGaps = 64;

}  // namespace

bool IncompleteSites::IsIncomplete(const Frame* frame, OpId index) const {
  const Op& op = frame->region->ops[index];
  if (op.kind != OpKind::kCallSite || op.num_tokens < 2) return false;
  const size_t num_pending = frame->pending()[index];
  if (num_pending == 0) return false;
  const PartialCall* const partial = partial_calls_->Find(frame, index);
  if (partial != nullptr && partial->child != nullptr) return false;  // the call is open
  if (WaitsForAnnouncement(op)) return IsAnnounced(frame, op);
  const size_t num_dead = partial == nullptr ? 0 : partial->dead_arguments.size();
  return num_pending + num_dead < op.num_tokens && HasInvariants(frame, op);
}

void IncompleteSites::Unlink(Frame* frame) {
  frames_[frame->incomplete_position] = nullptr;
  ++gaps_;
  for (; !frames_.empty() && frames_.back() == nullptr; --gaps_) frames_.pop_back();
  if (ABSL_PREDICT_FALSE(gaps_ > kMostGaps && gaps_ > frames_.size() / 2)) CloseGaps();
  --frame->live;  // This is not the last count, because the caller holds another.
}

void IncompleteSites::CloseGaps() {
  frames_.erase(std::remove(frames_.begin(), frames_.end(), nullptr), frames_.end());
  for (uint32_t i = 0; i < frames_.size(); ++i) frames_[i]->incomplete_position = i;
  gaps_ = 0;
}

void IncompleteSites::Clear() {
  frames_.clear();
  gaps_ = 0;
}

}  // namespace tensorflow_recursion
