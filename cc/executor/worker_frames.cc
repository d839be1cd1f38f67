// How a worker opens frames: of the root, of calls, of a loop's iterations.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "cc/executor/run.h"
#include "cc/executor/worker.h"
#include "cc/executor/worker_inline.h"

namespace tensorflow_recursion {

// Fires what waits for nothing but the frame itself.
void Worker::StartFrame(Frame* frame) {
  const Region& region = *frame->region;
  if (region.frame_start != kNone) DeliverControls(frame, region.ports[region.ops[region.frame_start].port]);
  for (uint32_t op : region.sources) Push(frame, op);
}

void Worker::OpenRoot(std::vector<Value> arguments) {
  Frame* root = NewFrame(program_.regions[0], nullptr, kNone, 0);
  for (uint32_t i = root->region->num_firing; i < root->region->ops.size(); ++i) {
    const Op& op = root->region->ops[i];
    if (op.kind == OpKind::kArgument) DeliverPort(root, &root->region->ports[op.port], arguments[op.index].Take());
  }
  for (Value& unread : arguments) unread.Release();
  StartFrame(root);
  Unref(root);
}

void Worker::SetTag(Frame* frame, const FrameTag& tag) {
  Value* slots = frame->values() + frame->region->tag_slot;
  slots[0] = Value::Scalar(tag.id);
  slots[1] = Value::Scalar(static_cast<uint64_t>(tag.iteration));
}

// --- Calls ----------------------------------------------------------------------------------------

bool Worker::CheckDepth(const Frame* caller, const CallSite& site) {
  const bool is_too_deep = caller->depth >= program_.options.max_depth;
  const bool is_too_large = run_->frame_bytes.load(std::memory_order_relaxed) > run_->max_frame_bytes;
  if (ABSL_PREDICT_TRUE(!is_too_deep && !is_too_large)) return true;
  budget_ = 0;
  const std::string limit = is_too_deep ? absl::StrCat("the limit is ", program_.options.max_depth)
                                        : absl::StrCat("where its frames take ", kDefaultMaxFrameBytes >> 20,
                                                       " MiB, the limit unless max_depth is above ", kDefaultMaxDepth);
  run_->FailAt(
      absl::ResourceExhaustedError(absl::StrCat(
          "Recursion too deep: call of '", site.callee_name, "' would be at depth ", caller->depth + 1, ", ", limit,
          "; raise it by the optimizer's parameter max_depth, as in session_config(max_depth=...)\n\t [[{{node ",
          site.name, "}}]]")),
      caller);
  return false;
}

// All at once, before any is delivered: a function may return one at once, to where the others lay.
inline const Value* Worker::TakeArguments(Frame* caller, const Op& op) {
  Value* slots = caller->values() + op.slot;
  for (uint32_t i = 0; i < op.num_inputs; ++i) {
    inputs_[i] = slots[i];
    slots[i] = Value::Empty();
  }
  return inputs_.data();
}

// Whether the call is dead with these arguments dead, of all that it waits for.
static bool IsDeadCall(const Op& op, const CallSite& site, const std::vector<uint32_t>& dead) {
  if (!site.waits_for_announcement) return dead.size() == op.num_tokens;
  return std::find(dead.begin(), dead.end(), op.num_inputs - 1u) != dead.end();
}

// Opens the callee's frame with the arguments that are there: in the caller's slots, or `given` along
// with a call from another worker. The call's count in the caller's `live` becomes the child's.
void Worker::OpenSite(Frame* caller, uint32_t index, const std::vector<Value>* given) {
  const Op& op = caller->region->ops[index];
  const CallSite& site = program_.sites[op.index];
  std::vector<uint32_t> dead;  // none in a call from another worker
  if (const PartialCall* odd = given != nullptr ? nullptr : FindPartialCall(caller, index); odd != nullptr)
    dead = odd->dead;
  if (ABSL_PREDICT_FALSE(!dead.empty()) && IsDeadCall(op, site, dead)) {
    partial_calls_.erase({caller, index});
    // The slot of a dead argument may be another operator's: nothing of this call was ever in it.
    for (uint32_t i = 0; i < op.num_inputs; ++i) {
      if (std::find(dead.begin(), dead.end(), i) == dead.end()) caller->values()[op.slot + i].Release();
    }
    Kill(caller, caller->region->port_deaths[op.port + op.num_ports]);
    return Unref(caller);
  }
  if (!CheckDepth(caller, site)) {
    if (given == nullptr) return;
    for (Value value : *given) value.Release();
    return;
  }
  const Region& callee = *site.callee;
  Frame* child = NewFrame(callee, caller, index, caller->depth + 1);
  if (ABSL_PREDICT_FALSE(callee.tag_slot != kNone)) SetTag(child, ChildTag(TagOf(caller), site.call_id));
  const Value* arguments = given != nullptr ? given->data() : TakeArguments(caller, op);
  const uint32_t missing = given != nullptr ? 0 : caller->pending()[index];
  if (ABSL_PREDICT_FALSE(missing > 0)) {
    child->missing = missing;
    ++child->live;
    MakePartialCall(caller, index).child = child;
  } else if (ABSL_PREDICT_FALSE(!dead.empty())) {
    partial_calls_.erase({caller, index});
  }
  for (uint32_t i = 0; i < op.num_inputs; ++i) {
    Value value = arguments[i];
    if (ABSL_PREDICT_FALSE(value.is_empty())) {
      if (std::find(dead.begin(), dead.end(), i) == dead.end()) continue;
      value = Value::Dead();
    }
    DeliverEntry(child, i < callee.entries.size() ? callee.entries[i] : kNone, value);
  }
  if (ABSL_PREDICT_FALSE(site.announce_port != kNone)) {
    Value opened = Value::Scalar(0);
    opened.boolean = true;
    DeliverResult(caller, index, site.announce_port, opened);
  }
  StartFrame(child);
  Unref(child);
}

// --- Loops ----------------------------------------------------------------------------------------

Frame* Worker::NewIteration(const Loop& loop, Frame* parent, uint32_t iteration) {
  ++parent->live;
  Frame* frame = NewFrame(*loop.body, parent, kNone, parent->depth);
  frame->iteration = iteration;
  if (ABSL_PREDICT_FALSE(traces_)) LogFrameOpened(program_, *frame);
  if (ABSL_PREDICT_FALSE(loop.body->tag_slot != kNone)) {
    const auto tag = loop.in_function ? &ChildTag : &MainLoopTag;
    SetTag(frame, tag(TagOf(parent), loop.key, iteration));
  }
  const Value* enters = parent->values() + loop.parent->ops[loop.start_op].slot;
  for (const LoopDelivery& constant : loop.constants) {
    const Value& value = enters[constant.slot];
    DeliverEntry(frame, constant.entry,
                 value.kind == Value::Kind::kTensor ? Value::Borrow(value.tensor) : value.Copy());
  }
  --budget_;
  return frame;
}

void Worker::FireLoopStart(Frame* frame, const Op& op) {
  const Loop& loop = program_.loops[op.index];
  Value* enters = frame->values() + op.slot;
  if (ABSL_PREDICT_FALSE(loop.is_partial)) {
    const bool is_dead = std::all_of(loop.starts.begin(), loop.starts.end(),
                                     [&](const LoopDelivery& start) { return enters[start.slot].is_dead(); });
    if (is_dead && !loop.crosses_devices) return Kill(frame, frame->region->port_deaths[op.port + op.num_ports]);
  } else if (ABSL_PREDICT_FALSE(op.takes_dead)) {
    // The loop is in a branch that was not taken: what it would have sent is sent as dead, once.
    const bool is_dead = std::any_of(enters, enters + op.num_inputs, [](const Value& v) { return v.is_dead(); });
    if (is_dead) Kill(frame, frame->region->port_deaths[op.port + op.num_ports]);
  }
  Frame* first = NewIteration(loop, frame, 0);
  for (const LoopDelivery& start : loop.starts) {
    const Value& value = enters[start.slot];
    DeliverEntry(first, start.entry, value.Copy());
    if (start.index_entry != kNone) DeliverEntry(first, start.index_entry, value.is_dead() ? value : Value::Scalar(0));
  }
  for (const LoopDelivery& start : loop.starts) enters[start.slot].Release();
  StartFrame(first);
  Unref(first);
}

// Whether this was the last iteration of a partial loop. What has left it in none is dead then.
bool Worker::EndsHere(Frame* frame, const Loop& loop, const Op& op) {
  Value* const inputs = frame->values() + op.slot;
  Value* const exits = inputs + loop.num_nexts;
  Frame* const parent = frame->parent;
  const Op& start = loop.parent->ops[loop.start_op];
  Value* const exited = parent->values() + start.slot + start.num_inputs;
  for (uint32_t i = 0; i < loop.num_exits; ++i) {
    if (!exits[i].is_dead()) exited[i / 64].bits |= uint64_t{1} << (i % 64);
    exits[i].Release();
  }
  const bool has_next = !std::all_of(inputs, exits, [](const Value& value) { return value.is_dead(); });
  const Value* const condition = exits + loop.num_exits;
  const bool has_condition = condition < inputs + op.num_inputs;
  // Where other devices take part, they wait for the next iteration also if there is nothing left in it.
  const bool goes_on = has_condition ? !condition->is_dead() && (has_next || loop.crosses_devices) : has_next;
  if (goes_on) return false;
  for (uint32_t i = 0; i < loop.num_exits; ++i) {
    if (((exited[i / 64].bits >> (i % 64)) & 1) == 0) Kill(parent, loop.parent->port_deaths[start.port + i]);
  }
  return true;
}

void Worker::FireLoopNext(Frame* frame, const Op& op) {
  const Loop& loop = program_.loops[op.index];
  if (ABSL_PREDICT_FALSE(loop.is_partial) && EndsHere(frame, loop, op)) return;
  Frame* next = NewIteration(loop, frame->parent, frame->iteration + 1);
  Value* values = frame->values() + op.slot;
  Value one = Value::Scalar(0);
  one.int32 = 1;  // merges read their NextIteration, which is input 1
  for (const LoopDelivery& delivery : loop.nexts) {
    Value& value = values[delivery.slot];
    if (delivery.index_entry != kNone) DeliverEntry(next, delivery.index_entry, value.is_dead() ? value : one);
    DeliverEntry(next, delivery.entry, (delivery.is_last ? value.Take() : value.Copy()).Escape());
  }
  StartFrame(next);
  Unref(next);
}

}  // namespace tensorflow_recursion
