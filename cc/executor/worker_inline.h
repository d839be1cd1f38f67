// What the parts of a worker do at every step: small enough to be compiled into each of them.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_INLINE_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_INLINE_H_

#include <cstdint>

#include "absl/base/optimization.h"
#include "cc/executor/run_log.h"
#include "cc/executor/worker.h"

namespace tensorflow_recursion {

// Work between two looks at cancellation, mail and idle workers; a call weighs one.
inline constexpr int kPollInterval = 512;

inline void Worker::Push(Frame* frame, uint32_t op, Value value) {
  ++frame->live;
  Item* const item = ready_.push();
  item->frame = frame;
  item->op = op;
  value.CopyTo(&item->value);
}

inline void Worker::PushCall(Frame* frame, uint32_t op) {
  ++frame->live;
  Call* const call = calls_.push();
  call->frame = frame;
  call->op = op;
}

inline void Worker::CountDown(Frame* frame, uint32_t op) {
  if (--frame->pending()[op] == 0) Push(frame, op);
}

inline void Worker::DeliverControl(Frame* frame, const Edge& edge) {
  if (edge.kind == EdgeKind::kOnly) {
    Push(frame, edge.op);
  } else if (ABSL_PREDICT_TRUE(edge.kind == EdgeKind::kControl)) {
    CountDown(frame, edge.op);
  } else {
    MarkUnion(frame, edge.op, edge.index);
  }
}

inline void Worker::DeliverControls(Frame* frame, const Port& port) {
  const Edge* edges = frame->region->edges.data();
  for (uint32_t e = port.controls; e < port.end; ++e) {
    DeliverControl(frame, edges[e]);
  }
}

// Control edges of the operator itself, not of one port.
inline void Worker::DeliverWholeOp(Frame* frame, const Op& op) {
  if (op.has_controls) DeliverControls(frame, frame->region->ports[op.port + op.num_ports]);
}

// Hands a function's argument or a loop's variable to its consumers.
inline void Worker::DeliverEntry(Frame* frame, uint32_t entry, Value value) {
  if (entry == kNone) return value.Release();
  const Op& op = frame->region->ops[entry];
  const uint32_t port = op.port;
  if (ABSL_PREDICT_FALSE(value.is_dead())) return Kill(frame, frame->region->port_deaths[port]);
  if (op.lending_slot != kNone && value.kind == Value::Kind::kTensor) {
    frame->values()[op.lending_slot] = value;
    frame->owns_tensors = 1;
    value = Value::Borrow(value.tensor);
  }
  DeliverPort(frame, &frame->region->ports[port], value);
}

// nullptr for the calls that are as usual.
inline PartialCall* Worker::FindPartialCall(Frame* caller, uint32_t op) {
  if (ABSL_PREDICT_TRUE(!caller->has_partial_calls)) return nullptr;
  auto position = partial_calls_.find({caller, op});
  return position == partial_calls_.end() ? nullptr : &position->second;
}

inline FrameTag Worker::TagOf(Frame* frame) const {
  const uint32_t slot = frame->region->tag_slot;
  if (ABSL_PREDICT_TRUE(slot == kNone)) return {};
  return {frame->values()[slot].bits, frame->values()[slot + 1].int64};
}

inline Frame* Worker::NewFrame(const Region& region, Frame* parent, uint32_t site_op, uint32_t depth) {
  Frame* frame = pool_.New(region);
  frame->parent = parent;
  frame->site_op = site_op;
  frame->owner = this;
  frame->live = 1;  // for whoever opens it, until it is started
  frame->depth = depth;
  frame->missing = 0;
  if (ABSL_PREDICT_FALSE(traces_) && region.loop == nullptr) LogFrameOpened(program_, *frame);
  return frame;
}

// Ends frames from `frame` upwards as far as nothing in them is left.
inline void Worker::Unref(Frame* frame) {
  while (--frame->live == 0) {
    Frame* parent = frame->parent;
    if (ABSL_PREDICT_FALSE(frame->has_partial_calls)) ForgetPartialCalls(frame);
    if (ABSL_PREDICT_FALSE(traces_)) LogFrameClosed(program_, *frame);
    pool_.Delete(frame);
    if (parent == nullptr) return;
    if (ABSL_PREDICT_FALSE(parent->owner != this)) {
      return parent->owner->Post(Message(Message::Kind::kChildEnded, parent));
    }
    frame = parent;
  }
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_WORKER_INLINE_H_
