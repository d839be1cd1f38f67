// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/call_opener.h"

#include <algorithm>
#include <atomic>
#include <functional>

#include "absl/base/optimization.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "cc/executor/depth_errors.h"
#include "cc/values/invariants.h"

namespace tensorflow_recursion {
namespace {

// Whether an invariant of the recursion that the call enters has died while the call lives. According to the analysis
// this can't happen.
bool HasDeadInvariant(const Op& op, const CallSite& site, const PartialCall& partial) {
  return std::any_of(partial.dead_arguments.begin(), partial.dead_arguments.end(),
                     [&](uint32_t argument) { return argument >= op.num_inputs - site.num_invariants; });
}

// Whether the dead arguments of a call make it dead: all that it waits for are dead, or the announcement is, by which
// another device says whether the call lives.
bool IsDead(const Op& op, const CallSite& site, const PartialCall& partial) {
  if (site.waits_for_announcement) return partial.is_dead(op.num_inputs - 1u);
  return partial.dead_arguments.size() == op.num_tokens;
}

}  // namespace

CallOpener::CallOpener(WorkerContext* context, FrameStore* frames, PartialCalls* partial_calls,
                       IncompleteSites* incomplete_sites, TokenRouter* router, CompiledCalls* compiled)
    : context_(context),
      frames_(frames),
      partial_calls_(partial_calls),
      incomplete_sites_(incomplete_sites),
      router_(router),
      compiled_(compiled),
      arguments_(context->program.max_inputs, Value::Empty()) {}

void CallOpener::OpenRoot(std::vector<Value> arguments) {
  Frame* root = frames_->New(context_->program.regions[0], nullptr, kNone, 0);
  const Region& region = *root->region;
  for (uint32_t i = region.num_firing; i < region.ops.size(); ++i) {
    const Op& op = region.ops[i];
    if (op.kind == OpKind::kArgument) router_->DeliverPort(root, &region.ports[op.port], arguments[op.index].Take());
  }
  for (Value& unread : arguments) unread.Release();
  router_->StartFrame(root);
  frames_->Unref(root);
}

void CallOpener::Open(Frame* caller, OpId index) {
  const Op& op = caller->region->ops[index];
  const CallSite& site = context_->program.SiteOf(op);
  const PartialCall* const partial = partial_calls_->Find(caller, index);
  if (ABSL_PREDICT_FALSE(partial != nullptr) && IsDead(op, site, *partial)) return DropDead(caller, index, *partial);
  if (ABSL_PREDICT_FALSE(partial != nullptr) && HasDeadInvariant(op, site, *partial)) {
    return context_->FailAt(
        absl::InternalError(absl::StrCat("Call of '", site.callee_name, "' at '", site.name,
                                         "': an argument that its recursion keeps died while the call lives")),
        caller);
  }
  if (ABSL_PREDICT_FALSE(!CheckDepth(caller, site))) return;
  if (site.compiled != nullptr && partial == nullptr && caller->pending()[index] == 0) {
    Value* const slots = caller->slots_of(op);
    if (compiled_->Takes(site, slots, op.num_inputs)) {
      return Reopen(compiled_->Start(caller, index, slots, op.num_inputs));
    }
  }
  Frame* const child = NewChild(caller, index, site);
  TakeArguments(caller, index, child);
  Start(child, arguments_.data(), op.num_inputs, site);
}

void CallOpener::OpenGiven(Frame* caller, OpId index, std::vector<Value>* arguments) {
  const CallSite& site = context_->program.SiteOf(caller->region->ops[index]);
  if (!CheckDepth(caller, site)) {
    for (Value& value : *arguments) value.Release();
    return;
  }
  const auto num_arguments = static_cast<uint32_t>(arguments->size());
  if (compiled_->Takes(site, arguments->data(), num_arguments)) {
    return Reopen(compiled_->Start(caller, index, arguments->data(), num_arguments));
  }
  OpenInFrame(caller, index, arguments);
}

void CallOpener::ResumeCompiled() { Reopen(compiled_->Resume()); }

void CallOpener::EndFork(Fork* fork) { Reopen(compiled_->EndFork(fork)); }

void CallOpener::Reopen(std::optional<CompiledCalls::Returned> call) {
  if (call) OpenInFrame(call->caller, call->op, &call->arguments);
}

void CallOpener::OpenInFrame(Frame* caller, OpId index, std::vector<Value>* arguments) {
  const CallSite& site = context_->program.SiteOf(caller->region->ops[index]);
  Frame* const child = NewChild(caller, index, site);
  Start(child, arguments->data(), static_cast<uint32_t>(arguments->size()), site);
}

void CallOpener::OpenIncomplete(Frame* frame) {
  ++frame->live;
  for (uint32_t i = 0; i < frame->region->num_firing; ++i) {
    const OpId op(i);
    // This may change with each call that is opened: one may have given the next its last argument.
    if (!incomplete_sites_->IsIncomplete(frame, op)) continue;
    incomplete_sites_->NoteOpened(frame);
    ++frame->live;
    Open(frame, op);
  }
  frames_->Unref(frame);
}

bool CallOpener::CheckDepth(const Frame* caller, const CallSite& site) {
  if (ABSL_PREDICT_FALSE(caller->depth == 0)) NoteMainCall();
  const int64_t max_depth = context_->program.options.max_depth;
  const bool is_too_deep = caller->depth >= max_depth;
  const RunState& run = *context_->run;
  const bool is_too_large =
      run.frame_bytes.load(std::memory_order_relaxed) > run.max_frame_bytes.load(std::memory_order_relaxed);
  if (ABSL_PREDICT_TRUE(!is_too_deep && !is_too_large)) return true;
  context_->FailAt(RecursionTooDeep(run, site.callee_name, site.name, caller->depth + 1, is_too_deep), caller);
  return false;
}

void CallOpener::NoteMainCall() const {
  const std::function<void()>& note = context_->run->environment.on_main_call;
  if (note) note();
}

void CallOpener::DropDead(Frame* caller, OpId index, const PartialCall& partial) {
  const Op& op = caller->region->ops[index];
  for (uint32_t i = 0; i < op.num_inputs; ++i) {
    // A dead argument never came to its slot, which another operator may use by now.
    if (!partial.is_dead(i)) caller->slots_of(op)[i].Release();
  }
  partial_calls_->Erase(caller, index);
  router_->KillAll(caller, op);
  frames_->Unref(caller);
}

inline Frame* CallOpener::NewChild(Frame* caller, OpId index, const CallSite& site) {
  const Region& callee = *site.callee;
  Frame* const child = frames_->New(callee, caller, index, caller->depth + 1);
  if (callee.invariants_slot != kNone && site.num_invariants == 0) child->ReadInvariantsOf(*caller);
  if (ABSL_PREDICT_FALSE(callee.tag_slot != kNone)) child->set_tag(ChildTag(caller->tag(), site.call_id));
  return child;
}

// Takes all arguments out of the caller's slots before any is delivered. A function may return an argument at once, and
// the result may go to a slot where another argument lies. Arguments that are still to come will go to `child`.
inline void CallOpener::TakeArguments(Frame* caller, OpId index, Frame* child) {
  const Op& op = caller->region->ops[index];
  Value* slots = caller->slots_of(op);
  for (uint32_t i = 0; i < op.num_inputs; ++i) {
    arguments_[i] = slots[i];
    slots[i] = Value::Empty();
  }
  if (ABSL_PREDICT_FALSE(caller->has_partial_calls)) {
    if (const PartialCall* const partial = partial_calls_->Find(caller, index); partial != nullptr) {
      for (const uint32_t dead : partial->dead_arguments) arguments_[dead] = Value::Dead();
    }
  }
  const uint32_t missing = caller->pending()[index];
  if (ABSL_PREDICT_FALSE(missing > 0)) {
    child->missing = missing;
    ++child->live;
    partial_calls_->SetChild(caller, index, child);
  } else if (ABSL_PREDICT_FALSE(caller->has_partial_calls)) {
    partial_calls_->Erase(caller, index);
  }
}

// Reads the variables of the recursion that the call enters, besides what it is passed.
Invariants* CallOpener::NewInvariants(const Frame* child, const Value* passed, const CallSite& site) {
  absl::InlinedVector<Value, 16> values(passed, passed + site.num_invariants);
  for (const InvariantRead& read : site.invariant_reads) {
    const KernelNode& node = context_->program.kernels[read.kernel];
    Value handle = values[read.handle].Lend();
    Value value = Value::Empty();
    KernelCall call{&handle, &value, child->tag(), context_->index, /*is_dead=*/false};
    const absl::Status status = context_->run->environment.runner->Run(node, absl::MakeSpan(&call, 1));
    handle.Release();
    if (ABSL_PREDICT_FALSE(!status.ok())) context_->FailAt(status, child);
    // Frames may still open before they see the error.
    if (ABSL_PREDICT_FALSE(value.is_empty())) value = Value::Own(NewTensor(tensorflow::Tensor(node.outputs[0])));
    values.push_back(value);
  }
  return Invariants::New(values.data(), static_cast<uint32_t>(values.size()), site.num_kept_results);
}

inline void CallOpener::Start(Frame* child, const Value* arguments, uint32_t num_arguments, const CallSite& site) {
  if (ABSL_PREDICT_FALSE(site.num_invariants > 0)) {
    num_arguments -= site.num_invariants;
    child->EnterWith(NewInvariants(child, arguments + num_arguments, site));
  }
  for (uint32_t i = 0; i < num_arguments; ++i) {
    if (ABSL_PREDICT_TRUE(!arguments[i].is_empty())) router_->DeliverArgument(child, i, arguments[i]);
  }
  if (ABSL_PREDICT_FALSE(site.announce_port != kNone)) {
    Value lives = Value::Scalar(0);
    lives.boolean = true;
    router_->DeliverResult(child->parent, child->site_op, site.announce_port, lives);
  }
  for (const uint32_t invariant : child->region->delivered_invariants) {
    const uint32_t argument = static_cast<uint32_t>(child->region->first_invariant()) + invariant;
    router_->DeliverArgument(child, argument, child->invariants().Get(invariant));
  }
  router_->StartFrame(child);
  frames_->Unref(child);
}

}  // namespace tensorflow_recursion
