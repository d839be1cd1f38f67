// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/death_teller.h"

#include "cc/executor/token_router.h"

namespace tensorflow_recursion {

void DeathTeller::Kill(Frame* frame, const DeathList& list) {
  if (list.begin == list.end) return;
  ++frame->live;  // keeps the frame until its list has been told: a death told before may end all else in it
  lists_.emplace_back(frame, list);
  if (is_telling_) return;  // the loop below runs already, further up the stack, and will come to this list
  is_telling_ = true;
  while (!lists_.empty()) {
    const auto [where, events] = lists_.back();
    lists_.pop_back();
    for (uint32_t i = events.begin; i < events.end; ++i) Learn(where, where->region->deaths[i]);
    frames_->Unref(where);
  }
  is_telling_ = false;
}

void DeathTeller::Learn(Frame* frame, const DeathEvent& event) {
  const Op& op = frame->region->ops[event.op];
  switch (op.kind) {
    case OpKind::kMerge:
      return LearnInMerge(frame, event);
    case OpKind::kUnion:
      return router_->MarkUnion(frame, event.op, event.index);
    case OpKind::kCallSite:
      return LearnInCall(frame, event);
    case OpKind::kResult:
      return router_->DeliverResult(frame->parent, frame->site_op, op.index, Value::Dead());
    default:
      return LearnInInput(frame, event);
  }
}

// A merge is dead when all its inputs are. Being told twice is harmless here as everywhere: whoever learns of a death
// ignores it the second time. So a merge hands its death on once, however many ways lead to it.
inline void DeathTeller::LearnInMerge(Frame* frame, const DeathEvent& event) {
  const Op& merge = frame->region->ops[event.op];
  if (merge.lets_first_through) {
    uint16_t& state = frame->pending()[event.op];
    const auto input = static_cast<uint16_t>(1 << event.index);
    if ((state & (kMergeDecided | input)) != 0) return;  // the merge has its value, or knows of the death
    state |= input;
    if (state == (1 << merge.num_inputs) - 1) router_->KillAll(frame, merge);
    return;
  }
  Value* masks = frame->slots_of(merge);
  if (!masks[0].is_empty()) return;  // the merge has its value
  const uint64_t input = uint64_t{1} << (event.index % 64);
  if ((masks[event.index / 64].bits & input) != 0) return;
  masks[event.index / 64].bits |= input;
  uint32_t num_dead = 0;
  for (uint32_t i = 0; i < merge.num_inputs; ++i) num_dead += (masks[i / 64].bits >> (i % 64)) & 1;
  if (num_dead == merge.num_inputs) router_->KillAll(frame, merge);
}

inline void DeathTeller::LearnInCall(Frame* frame, const DeathEvent& event) {
  if (frame->pending()[event.op] == 0) return;
  if (!partial_calls_->AddDeadArgument(frame, event.op, event.index)) return;
  const SlotId slot(frame->region->ops[event.op].slot + event.index);
  router_->DeliverCallArgument(frame, {event.op, slot, event.index, EdgeKind::kCallArgument}, Value::Dead());
}

// For operators that fire with dead inputs, too.
inline void DeathTeller::LearnInInput(Frame* frame, const DeathEvent& event) {
  Value& slot = frame->slots_of(frame->region->ops[event.op])[event.index];
  if (!slot.is_empty() || frame->pending()[event.op] == 0) return;
  slot = Value::Dead();
  router_->CountDown(frame, event.op);
}

}  // namespace tensorflow_recursion
