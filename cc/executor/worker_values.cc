// Values on their way from the port that yields them to the operators, calls and callers that read it.
// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "cc/executor/worker.h"
#include "cc/executor/worker_inline.h"

namespace tensorflow_recursion {

inline void Worker::Store(Frame* frame, const Edge& edge, Value value) {
  value.CopyTo(&frame->values()[edge.slot]);
  if (value.owns()) frame->owns_tensors = 1;
  CountDown(frame, edge.op);
}

// Gives the value to all who read the port. Operators that only let it pass (merges, gates, results,
// exits) are walked through on the spot, callers of callers included: a loop, never a recursion.
void Worker::DeliverPort(Frame* frame, const Port* port, Value value) {
  while (port != nullptr) {
    if (port->controls != port->end) DeliverControls(frame, *port);
    if (port->begin == port->controls) return value.Release();
    const Edge* edge = frame->region->edges.data() + port->begin;
    const Edge* last = frame->region->edges.data() + port->controls - 1;
    for (; edge != last; ++edge) DeliverCopy(frame, *edge, value.Copy());
    if (last->kind == EdgeKind::kOnly) return Push(frame, last->op, value);
    if (ABSL_PREDICT_TRUE(last->kind == EdgeKind::kData)) return Store(frame, *last, value);
    port = PassOn(&frame, *last, &value);
  }
}

// For all readers but the last: what would pass on at once waits for its turn, or this would recurse.
void Worker::DeliverCopy(Frame* frame, const Edge& edge, Value value) {
  if (edge.kind == EdgeKind::kOnly) return Push(frame, edge.op, value);
  if (edge.kind == EdgeKind::kData) return Store(frame, edge, value);
  const Port* port = PassOn(&frame, edge, &value);
  if (port == nullptr) return;
  ++frame->live;
  late_ports_.push_back({frame, port, value});
}

// Where a value goes that comes along an edge that isn't plain data: the next port, in *frame, or
// nullptr if it stays there.
const Port* Worker::PassOn(Frame** frame, const Edge& edge, Value* value) {
  const Region& region = *(*frame)->region;
  const Op& op = region.ops[edge.op];
  switch (edge.kind) {
    case EdgeKind::kGate: {
      const uint16_t decided = (*frame)->pending()[op.index];
      if (decided > 0) {
        DeliverWholeOp(*frame, op);
        return &region.ports[op.port + decided - 1];
      }
      value->CopyTo(&(*frame)->values()[edge.slot]);
      if (value->owns()) (*frame)->owns_tensors = 1;
      return nullptr;
    }
    case EdgeKind::kMerge: {
      if (ABSL_PREDICT_FALSE(!op.passes_on)) {
        StoreInMerge(*frame, edge, *value);
        return nullptr;
      }
      uint16_t& state = (*frame)->pending()[edge.op];
      if ((state & kMergeDecided) != 0) {
        value->Release();  // another input has won
        return nullptr;
      }
      state |= kMergeDecided;
      return &region.ports[op.port];
    }
    case EdgeKind::kResult: {
      *value = value->Escape();
      Frame* const caller = (*frame)->parent;
      const Op& site = caller->region->ops[(*frame)->site_op];
      if (ABSL_PREDICT_FALSE(caller->owner != this) || op.index >= site.num_ports) {
        DeliverResult(caller, (*frame)->site_op, op.index, *value);
        return nullptr;
      }
      *frame = caller;
      return &caller->region->ports[site.port + op.index];
    }
    case EdgeKind::kExit: {
      *value = value->Escape();
      const Loop& loop = *region.loop;
      *frame = (*frame)->parent;
      return &loop.parent->ports[loop.parent->ops[loop.start_op].port + op.index];
    }
    case EdgeKind::kSiteArgument:
      DeliverSiteArgument(*frame, edge, *value);
      return nullptr;
    default:
      Store(*frame, edge, *value);
      return nullptr;
  }
}

void Worker::StoreInMerge(Frame* frame, const Edge& edge, Value value) {
  Value& slot = frame->values()[edge.slot];
  if (!slot.is_empty()) return value.Release();  // another input has won
  slot = value;
  slot.position = edge.index;
  if (value.owns()) frame->owns_tensors = 1;
  CountDown(frame, edge.op);
}

// An argument for a frame that is already open.
void Worker::DeliverArgument(Frame* callee, uint32_t index, Value value) {
  if (callee->owner != this) {
    Message message(Message::Kind::kArgument, callee, 0, index);
    message.values.push_back(value);
    return callee->owner->Post(std::move(message));
  }
  const std::vector<uint32_t>& entries = callee->region->entries;
  DeliverEntry(callee, index < entries.size() ? entries[index] : kNone, value);
  if (--callee->missing == 0) Unref(callee);
}

void Worker::DeliverResult(Frame* caller, uint32_t op, uint32_t index, Value value) {
  if (ABSL_PREDICT_FALSE(caller->owner != this)) {
    Message message(Message::Kind::kResult, caller, op, index);
    message.values.push_back(value);
    return caller->owner->Post(std::move(message));
  }
  const Op& site = caller->region->ops[op];
  if (index >= site.num_ports) return value.Release();  // a result that this caller does not read
  if (ABSL_PREDICT_FALSE(value.is_dead())) return Kill(caller, caller->region->port_deaths[site.port + index]);
  DeliverPort(caller, &caller->region->ports[site.port + index], value);
}

void Worker::MarkUnion(Frame* frame, uint32_t op, uint32_t index) {
  Value& mask = frame->values()[frame->region->ops[op].slot + index / 64];
  const uint64_t bit = uint64_t{1} << (index % 64);
  if ((mask.bits & bit) != 0) return;
  mask.bits |= bit;
  CountDown(frame, op);
}

}  // namespace tensorflow_recursion
