// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/token_router.h"

#include <utility>

namespace tensorflow_recursion {

void TokenRouter::DeliverPort(Frame* frame, const Port* port, Value value) {
  while (port != nullptr) {
    if (port->controls != port->end) DeliverControls(frame, *port);
    if (port->begin == port->controls) return value.Release();
    const Edge* edge = frame->region->edges.data() + port->begin;
    const Edge* last = frame->region->edges.data() + port->controls - 1;
    for (; edge != last; ++edge) DeliverCopy(frame, *edge, value.Copy());
    if (last->kind == EdgeKind::kOnly) return queue_->Push(frame, last->op, value);
    if (ABSL_PREDICT_TRUE(last->kind == EdgeKind::kData)) return Store(frame, *last, value);
    port = LetThrough(&frame, *last, &value);
  }
}

// Gives the value to a reader other than the last. If the reader lets it through, where the value goes on is deferred,
// because to follow it from here would recurse.
void TokenRouter::DeliverCopy(Frame* frame, const Edge& edge, Value value) {
  if (edge.kind == EdgeKind::kOnly) return queue_->Push(frame, edge.op, value);
  if (edge.kind == EdgeKind::kData) return Store(frame, edge, value);
  const Port* port = LetThrough(&frame, edge, &value);
  if (port == nullptr) return;
  ++frame->live;
  deferred_ports_.push_back({frame, port, value});
}

void TokenRouter::DeliverDeferred() {
  if (!deferred_ports_.empty()) {
    const DeferredPort deferred = deferred_ports_.back();
    deferred_ports_.pop_back();
    DeliverPort(deferred.frame, deferred.port, deferred.value);
    return frames_->Unref(deferred.frame);
  }
  const DeferredArgument deferred = deferred_arguments_.back();
  deferred_arguments_.pop_back();
  DeliverMissingArgument(deferred.callee, deferred.index, deferred.value);
}

void TokenRouter::ClearDeferred() {
  for (DeferredPort& deferred : deferred_ports_) deferred.value.Release();
  deferred_ports_.clear();
  for (DeferredArgument& deferred : deferred_arguments_) deferred.value.Release();
  deferred_arguments_.clear();
}

// --- Operators that let values through ------------------------------------------------------------

const Port* TokenRouter::LetThrough(Frame** frame, const Edge& edge, Value* value) {
  const Op& op = (*frame)->region->ops[edge.op];
  switch (edge.kind) {
    case EdgeKind::kGate:
      return LetThroughGate(*frame, edge, *value);
    case EdgeKind::kMerge:
      return LetThroughMerge(*frame, edge, *value);
    case EdgeKind::kResult:
      return ReturnToCaller(frame, op, value);
    case EdgeKind::kExit:
      return LeaveLoop(frame, op, value);
    case EdgeKind::kCallArgument:
      DeliverCallArgument(*frame, edge, *value);
      return nullptr;
    default:
      Store(*frame, edge, *value);
      return nullptr;
  }
}

// Data waits in the gate's slot until the branch has its predicate.
inline const Port* TokenRouter::LetThroughGate(Frame* frame, const Edge& edge, const Value& value) {
  const Op& gate = frame->region->ops[edge.op];
  const uint16_t decided = frame->pending()[gate.branch()];  // the side that the branch has taken, plus one
  if (decided == 0) {
    frame->Keep(edge.slot, value);
    return nullptr;
  }
  DeliverDone(frame, gate);
  return &frame->region->ports[gate.port + decided - 1];
}

// The first live input wins, and later ones are dropped.
inline const Port* TokenRouter::LetThroughMerge(Frame* frame, const Edge& edge, Value value) {
  const Op& merge = frame->region->ops[edge.op];
  if (ABSL_PREDICT_TRUE(merge.lets_first_through)) {
    uint16_t& state = frame->pending()[edge.op];
    if ((state & kMergeDecided) != 0) {
      value.Release();
      return nullptr;
    }
    state |= kMergeDecided;
    return &frame->region->ports[merge.port];
  }
  Value& slot = frame->values()[edge.slot];
  if (!slot.is_empty()) {
    value.Release();
    return nullptr;
  }
  value.position = edge.index;
  Store(frame, edge, value);
  return nullptr;
}

// A borrowed tensor becomes an owned one, because the frame that lends it may end before the caller has read it.
inline const Port* TokenRouter::ReturnToCaller(Frame** frame, const Op& result, Value* value) {
  *value = value->Escape();
  Frame* const caller = (*frame)->parent;
  const OpId site_op = (*frame)->site_op;
  const Op& site = caller->region->ops[site_op];
  if (ABSL_PREDICT_FALSE(caller->owner != (*frame)->owner) || result.index >= site.num_ports) {
    DeliverResult(caller, site_op, result.index, *value);
    return nullptr;
  }
  *frame = caller;
  return &caller->region->ports[site.port + result.index];
}

inline const Port* TokenRouter::LeaveLoop(Frame** frame, const Op& exit, Value* value) {
  *value = value->Escape();
  const Loop& loop = *(*frame)->region->loop;
  *frame = (*frame)->parent;
  return &loop.parent->ports[loop.parent->ops[loop.start_op].port + exit.index];
}

// --- Calls and frames -----------------------------------------------------------------------------

void TokenRouter::DeliverCallArgument(Frame* frame, const Edge& edge, Value value) {
  const Op& site = frame->region->ops[edge.op];
  uint16_t& pending = frame->pending()[edge.op];
  if (site.num_tokens > 1) {
    const PartialCall* const partial = partial_calls_->Find(frame, edge.op);
    if (partial != nullptr && partial->child != nullptr) {
      deferred_arguments_.push_back({partial->child, edge.index, value});
      if (--pending == 0) partial_calls_->Erase(frame, edge.op);
      return;
    }
    incomplete_sites_->NoteArgument(frame, edge, value.is_dead(), partial);
  }
  if (!value.is_dead()) frame->Keep(edge.slot, value);
  if (--pending == 0) queue_->PushCall(frame, edge.op);
}

void TokenRouter::DeliverMissingArgument(Frame* callee, uint32_t index, Value value) {
  if (callee->owner != frames_->owner()) {
    Message message(Message::Kind::kArgument, callee, kNone, index);
    message.values.push_back(value);
    return callee->owner->Post(std::move(message));
  }
  DeliverArgument(callee, index, value);
  if (--callee->missing == 0) frames_->Unref(callee);
}

void TokenRouter::DeliverResult(Frame* caller, OpId op, uint32_t index, Value value) {
  if (ABSL_PREDICT_FALSE(caller->owner != frames_->owner())) {
    Message message(Message::Kind::kResult, caller, op, index);
    message.values.push_back(value);
    return caller->owner->Post(std::move(message));
  }
  const Op& site = caller->region->ops[op];
  if (index >= site.num_ports) return value.Release();  // a result that this caller does not read
  if (ABSL_PREDICT_FALSE(value.is_dead())) return Kill(caller, caller->region->port_deaths[site.port + index]);
  DeliverPort(caller, &caller->region->ports[site.port + index], value);
}

void TokenRouter::StartFrame(Frame* frame) {
  const Region& region = *frame->region;
  if (region.frame_start != kNone) DeliverControls(frame, region.ports[region.ops[region.frame_start].port]);
  for (OpId op : region.sources) queue_->Push(frame, op);
}

// A union fires when it has heard of each of its input edges, be it live or dead. Some may be told twice, but each
// counts once.
void TokenRouter::MarkUnion(Frame* frame, OpId op, uint32_t index) {
  Value& mask = frame->slots_of(frame->region->ops[op])[index / 64];
  const uint64_t bit = uint64_t{1} << (index % 64);
  if ((mask.bits & bit) != 0) return;
  mask.bits |= bit;
  CountDown(frame, op);
}

}  // namespace tensorflow_recursion
