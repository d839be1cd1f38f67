// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/loop_runner.h"

#include <algorithm>

#include "absl/base/optimization.h"
#include "cc/executor/frame_tag.h"
#include "cc/executor/run_log.h"

namespace tensorflow_recursion {
namespace {

bool IsDeadValue(const Value& value) { return value.is_dead(); }

}  // namespace

// Whether the loop does not run at all, because all its variables are dead. A loop that exchanges values with other
// devices runs even then, because these wait for its iterations. Operators that read the loop's exits, and sends in it,
// learn here that they are dead.
inline bool LoopRunner::IsDead(Frame* frame, const Loop& loop, const Op& op) {
  const Value* const enters = frame->slots_of(op);
  if (ABSL_PREDICT_FALSE(loop.is_partial)) {
    const bool is_dead = std::all_of(loop.starts.begin(), loop.starts.end(),
                                     [&](const LoopDelivery& start) { return enters[start.slot].is_dead(); });
    if (!is_dead || loop.crosses_devices) return false;
    router_->KillAll(frame, op);
    return true;
  }
  // The loop is in a branch that was not taken: what it would have sent is sent as dead, once.
  if (ABSL_PREDICT_FALSE(op.takes_dead) && std::any_of(enters, enters + op.num_inputs, IsDeadValue)) {
    router_->KillAll(frame, op);
  }
  return false;
}

void LoopRunner::FireStart(Frame* frame, const Op& op) {
  const Loop& loop = context_->program.LoopOf(op);
  if (IsDead(frame, loop, op)) return;
  Value* const enters = frame->slots_of(op);
  Frame* const first = NewIteration(loop, frame, 0);
  for (const LoopDelivery& start : loop.starts) {
    const Value& value = enters[start.slot];
    router_->DeliverEntry(first, start.entry, value.Copy());
    if (start.index_entry != kNone) {
      router_->DeliverEntry(first, start.index_entry, value.is_dead() ? value : Value::Scalar(0));
    }
  }
  for (const LoopDelivery& start : loop.starts) enters[start.slot].Release();
  Start(first);
}

void LoopRunner::FireNext(Frame* frame, const Op& op) {
  const Loop& loop = context_->program.LoopOf(op);
  if (ABSL_PREDICT_FALSE(loop.is_partial) && EndsHere(frame, loop, op)) return;
  Frame* const next = NewIteration(loop, frame->parent, frame->iteration + 1);
  Value* const values = frame->slots_of(op);
  Value one = Value::Scalar(0);
  one.int32 = 1;  // The NextIteration is input 1 of its merge.
  for (const LoopDelivery& delivery : loop.nexts) {
    Value& value = values[delivery.slot];
    if (delivery.index_entry != kNone) router_->DeliverEntry(next, delivery.index_entry, value.is_dead() ? value : one);
    router_->DeliverEntry(next, delivery.entry, (delivery.is_last ? value.Take() : value.Copy()).Escape());
  }
  Start(next);
}

// Opens the frame of an iteration, and gives it the values that are the same in all iterations. The frame around the
// loop keeps these.
Frame* LoopRunner::NewIteration(const Loop& loop, Frame* parent, uint32_t iteration) {
  ++parent->live;
  Frame* const frame = frames_->New(*loop.body, parent, kNone, parent->depth);
  frame->iteration = iteration;
  if (ABSL_PREDICT_FALSE(context_->traces)) LogFrameOpened(context_->program, *frame);
  if (ABSL_PREDICT_FALSE(loop.body->tag_slot != kNone)) {
    const auto tag = loop.in_function ? &ChildTag : &MainLoopTag;
    frame->set_tag(tag(parent->tag(), loop.key, iteration));
  }
  if (ABSL_PREDICT_FALSE(loop.body->invariants_slot != kNone)) frame->ReadInvariantsOf(*parent);
  const Value* const enters = parent->slots_of(loop.parent->ops[loop.start_op]);
  for (const LoopDelivery& constant : loop.constants) {
    const Value& value = enters[constant.slot];
    router_->DeliverEntry(frame, constant.entry,
                          value.kind == Value::Kind::kTensor ? Value::Borrow(value.tensor) : value.Copy());
  }
  context_->Spend(1);
  return frame;
}

inline void LoopRunner::Start(Frame* iteration) {
  router_->StartFrame(iteration);
  frames_->Unref(iteration);
}

// Whether this was the last iteration of a partial loop. An exit that has let no value out in any iteration is dead
// then.
bool LoopRunner::EndsHere(Frame* frame, const Loop& loop, const Op& op) {
  Value* const inputs = frame->slots_of(op);
  Value* const exits = inputs + loop.num_nexts;
  Frame* const parent = frame->parent;
  const Op& start = loop.parent->ops[loop.start_op];
  Value* const exited = parent->slots_of(start) + start.num_inputs;
  for (uint32_t i = 0; i < loop.num_exits; ++i) {
    if (!exits[i].is_dead()) exited[i / 64].bits |= uint64_t{1} << (i % 64);
    exits[i].Release();
  }
  const bool has_next = !std::all_of(inputs, exits, IsDeadValue);
  const Value* const condition = exits + loop.num_exits;
  const bool has_condition = condition < inputs + op.num_inputs;
  // Where other devices take part, they wait for the next iteration also if there is nothing left in it.
  const bool goes_on = has_condition ? !condition->is_dead() && (has_next || loop.crosses_devices) : has_next;
  if (goes_on) return false;
  for (uint32_t i = 0; i < loop.num_exits; ++i) {
    const bool has_let_out = ((exited[i / 64].bits >> (i % 64)) & 1) != 0;
    if (!has_let_out) router_->Kill(parent, loop.parent->port_deaths[start.port + i]);
  }
  return true;
}

}  // namespace tensorflow_recursion
