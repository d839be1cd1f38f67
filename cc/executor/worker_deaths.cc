// What a worker does when a value will never come: it tells those that must learn of it, and nobody else.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "cc/executor/worker.h"
#include "cc/executor/worker_inline.h"

namespace tensorflow_recursion {

void Worker::Kill(Frame* frame, const DeathList& list) {
  if (list.begin == list.end) return;
  ++frame->live;  // what is learned on the way here may end everything else in the frame
  deaths_.emplace_back(frame, list);
  if (killing_) return;  // the loop below, further up the stack, will come to it
  killing_ = true;
  while (!deaths_.empty()) {
    const auto [where, events] = deaths_.back();
    deaths_.pop_back();
    for (uint32_t i = events.begin; i < events.end; ++i) Learn(where, where->region->deaths[i]);
    Unref(where);
  }
  killing_ = false;
}

void Worker::Learn(Frame* frame, const DeathEvent& event) {
  const Op& op = frame->region->ops[event.op];
  switch (event.kind) {
    case DeathEvent::Kind::kUnion:
      return MarkUnion(frame, event.op, event.index);
    case DeathEvent::Kind::kMerge: {
      if (op.passes_on) {
        uint16_t& state = frame->pending()[event.op];
        if ((state & kMergeDecided) != 0) return;  // it has its value
        state |= static_cast<uint16_t>(1 << event.index);
        if (state == (1 << op.num_inputs) - 1) Kill(frame, frame->region->port_deaths[op.port + op.num_ports]);
        return;
      }
      Value* masks = frame->values() + op.slot;
      if (!masks[0].is_empty()) return;
      masks[event.index / 64].bits |= uint64_t{1} << (event.index % 64);
      uint32_t dead = 0;
      for (uint32_t i = 0; i < op.num_inputs; ++i) dead += (masks[i / 64].bits >> (i % 64)) & 1;
      // Once is enough, but twice is harmless: whoever learns of a death ignores the second time.
      if (dead == op.num_inputs) Kill(frame, frame->region->port_deaths[op.port + op.num_ports]);
      return;
    }
    case DeathEvent::Kind::kSiteArgument: {
      if (!LearnDeadArgument(frame, event)) return;
      return DeliverSiteArgument(frame, {event.op, op.slot + event.index, event.index, EdgeKind::kSiteArgument},
                                 Value::Dead());
    }
    case DeathEvent::Kind::kInput: {
      Value& slot = frame->values()[op.slot + event.index];
      if (!slot.is_empty() || frame->pending()[event.op] == 0) return;
      slot = Value::Dead();
      return CountDown(frame, event.op);
    }
    case DeathEvent::Kind::kResult:
      return DeliverResult(frame->parent, frame->site_op, event.index, Value::Dead());
  }
}

// Whether this is new: the same death may be told twice.
bool Worker::LearnDeadArgument(Frame* caller, const DeathEvent& event) {
  if (caller->pending()[event.op] == 0) return false;
  std::vector<uint32_t>& dead = MakePartialCall(caller, event.op).dead;
  if (std::find(dead.begin(), dead.end(), event.index) != dead.end()) return false;
  dead.push_back(event.index);
  return true;
}

}  // namespace tensorflow_recursion
