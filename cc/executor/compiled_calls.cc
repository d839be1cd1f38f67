// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/compiled_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "cc/executor/depth_errors.h"
#include "cc/values/record.h"
#include "cc/values/scalar_operators.h"

namespace tensorflow_recursion {
namespace {

// How many compiled calls count as one piece of a worker's work. So the worker makes some 8,000 of them before it looks
// up.
constexpr int64_t kCallsPerPiece = 16;
// Even if a worker has less of its budget left, it makes so many calls: to suspend one costs about as much.
constexpr int64_t kFewestCalls = 256;

// Whether the call was split off from one that has ended, or is about to.
bool IsUnwanted(const CompiledCall& call) {
  for (const Fork* fork = call.fork.get(); fork != nullptr; fork = fork->part_of.get()) {
    if (!fork->is_wanted.load(std::memory_order_relaxed)) return true;
  }
  return false;
}

// Returns nullptr if the value is no record.
Record* RecordIn(const Value& value) {
  if (value.kind == Value::Kind::kRecord) return value.record;
  const tensorflow::Tensor* const tensor = value.tensor_or_null();
  return tensor == nullptr ? nullptr : RecordInTensor(*tensor);
}

bool Fits(const RegisterType& type, const Value& argument) {
  if (type.dtype == tensorflow::DT_INVALID) return !argument.is_empty();  // it is not read
  if (type.is_record()) return RecordIn(argument) != nullptr;
  if (!type.is_array) return argument.is_scalar();
  return argument.tensor_or_null() != nullptr || argument.kind == Value::Kind::kRope;
}

}  // namespace

bool CompiledCalls::Takes(const CallSite& site, const Value* arguments, uint32_t num_arguments) const {
  if (site.compiled == nullptr || site.compiled->is_unfit.load(std::memory_order_relaxed)) return false;
  if (context_->traces) return false;
  const std::vector<RegisterType>& types = context_->program.code->functions[site.compiled->number].arguments;
  if (num_arguments < types.size()) return false;
  for (size_t i = 0; i < types.size(); ++i) {
    if (!Fits(types[i], arguments[i])) return false;
  }
  return true;
}

std::optional<CompiledCalls::Returned> CompiledCalls::Start(Frame* caller, OpId op, Value* arguments,
                                                            uint32_t num_arguments) {
  CompiledCall* const call = calls_.New();
  call->origin = {caller, op, nullptr};
  call->origin.function = SiteOf(call->origin).compiled;
  for (uint32_t i = 0; i < num_arguments; ++i) call->arguments->values.push_back(arguments[i].Take());
  ReadArguments(call);
  if (call->interpreter.Start(call->origin.function->number, call->registers, caller->depth + 1)) return Resume();
  const CallSite& site = SiteOf(call->origin);
  calls_.Retire(call);
  context_->FailAt(RecursionTooDeep(*context_->run, site.callee_name, site.name, caller->depth + 1,
                                    /*is_too_deep=*/false),
                   caller);
  return std::nullopt;
}

void CompiledCalls::ReadArguments(CompiledCall* call) {
  const std::vector<RegisterType>& types = context_->program.code->functions[call->origin.function->number].arguments;
  for (size_t i = 0; i < types.size(); ++i) {
    Value& argument = call->arguments->values[i];
    if (types[i].is_array) argument.Flatten();
    uint64_t bits = argument.is_scalar() ? argument.bits : 0;
    if (types[i].is_record()) bits = ToBits(RecordIn(argument));
    if (types[i].is_array) bits = ToBits(&call->arguments->arrays.emplace_back(*argument.tensor_or_null()));
    call->registers.push_back(bits);
  }
}

std::optional<CompiledCalls::Returned> CompiledCalls::Resume() {
  CompiledCall* const call = calls_.running().back().get();
  while (true) {
    if (IsUnwanted(*call)) return EndEarly(call);
    int64_t budget = std::max(context_->budget * kCallsPerPiece - spent_calls_, kFewestCalls);
    const int64_t before = budget;
    const Interpreter::State state = call->interpreter.Resume(&budget);
    Spend(call, before - std::max<int64_t>(budget, 0));
    switch (state) {
      case Interpreter::State::kDone:
        Finish(call);
        return std::nullopt;
      case Interpreter::State::kPaused:
        context_->PollSoon();
        return std::nullopt;
      case Interpreter::State::kJoins:
        if (Join(call)) continue;
        return std::nullopt;
      case Interpreter::State::kNeedsKernel: {
        const absl::StatusOr<bool> is_number = RunKernel(call);
        if (!is_number.ok()) return Fail(call, is_number.status());
        if (!*is_number) return EndUnfit(call);
        context_->Spend(1);
        if (context_->must_poll()) return std::nullopt;
        continue;
      }
      case Interpreter::State::kUnfit:
        return EndUnfit(call);
      case Interpreter::State::kTooDeep:
      case Interpreter::State::kTooLarge:
        return Fail(call, TooDeep(*call, state == Interpreter::State::kTooDeep));
    }
  }
}

// Counts the calls as work that the worker has done.
void CompiledCalls::Spend(CompiledCall* call, int64_t calls) {
  spent_calls_ += calls;
  context_->Spend(static_cast<int>(spent_calls_ / kCallsPerPiece));
  spent_calls_ %= kCallsPerPiece;
  pace_.NoteCalls(calls);
  if (call->fork != nullptr) call->fork->calls += calls;
}

// Runs the kernel of an operator that the code can't compute. Returns whether the result is a number, with which the
// call can go on.
absl::StatusOr<bool> CompiledCalls::RunKernel(CompiledCall* call) {
  const KernelCase& kernel_case = call->interpreter.kernel_case();
  const KernelNode& node = context_->program.kernels[kernel_case.kernel];
  std::vector<Value> inputs;
  inputs.reserve(kernel_case.operands.size());
  for (const KernelCase::Operand& operand : kernel_case.operands) {
    inputs.push_back(call->interpreter.KernelOperand(operand));
  }
  Value output = Value::Empty();
  KernelCall kernel_call{inputs.data(), &output, FrameTag(), context_->index, false};
  const absl::Status status = context_->run->environment.runner->Run(node, absl::MakeSpan(&kernel_call, 1));
  for (Value& input : inputs) input.Release();
  const bool is_number = status.ok() && output.is_scalar();
  if (is_number) {
    call->interpreter.SupplyResult(output.bits);
  } else {
    output.Release();
  }
  return status.ok() ? absl::StatusOr<bool>(is_number) : status;
}

// The run fails with the error of a call, unless nothing needs that call's results any more.
std::optional<CompiledCalls::Returned> CompiledCalls::Fail(CompiledCall* call, const absl::Status& status) {
  if (IsUnwanted(*call)) return EndEarly(call);
  context_->FailAt(status, call->origin.caller, &call->interpreter);
  return std::nullopt;
}

void CompiledCalls::Finish(CompiledCall* call) {
  if (call->fork != nullptr) return FinishFork(call);
  const std::vector<RegisterType>& types = context_->program.code->functions[call->origin.function->number].results;
  std::vector<Value> results;
  for (size_t i = 0; i < types.size(); ++i) {
    const uint64_t bits = call->interpreter.results()[i];
    if (types[i].dtype == tensorflow::DT_INVALID) {
      results.push_back(Value::Empty());
      continue;
    }
    if (types[i].is_record()) {
      results.push_back(Value::Own(call->interpreter.TakeRecord(i)));
    } else {
      results.push_back(types[i].is_array ? Value::Own(NewTensor(*FromBits<const Array*>(bits)->tensor))
                                          : Value::Scalar(bits));
    }
  }
  const CallOrigin origin = call->origin;
  calls_.Retire(call);
  for (uint32_t i = 0; i < results.size(); ++i) {
    if (!results[i].is_empty()) router_->DeliverResult(origin.caller, origin.op, i, results[i]);
  }
  frames_->EndCall(origin.caller);
}

std::optional<CompiledCalls::Returned> CompiledCalls::EndUnfit(CompiledCall* call) {
  call->origin.function->is_unfit.store(true, std::memory_order_relaxed);
  return EndEarly(call);
}

// Ends a call without a result. What was split off is no longer needed. But as long as another worker runs a part, it
// may look at the frame that has made the call, to name the path of calls in an error. So the call waits until all
// parts have come back, and keeps its count in the frame's `live` until then.
std::optional<CompiledCalls::Returned> CompiledCalls::EndEarly(CompiledCall* call) {
  call->ends_early = true;
  const auto is_back = [](const std::shared_ptr<Fork>& fork) {
    fork->is_wanted.store(false, std::memory_order_relaxed);
    return fork->is_done || !fork->is_taken.exchange(true);
  };
  call->forks.erase(std::remove_if(call->forks.begin(), call->forks.end(), is_back), call->forks.end());
  if (call->forks.empty()) return GiveBack(call);
  calls_.Suspend(call);
  return std::nullopt;
}

// Gives the call back with its arguments, to be made in frames from the beginning: it has done nothing that anybody
// could see. A fork is sent back to its owner without results.
std::optional<CompiledCalls::Returned> CompiledCalls::GiveBack(CompiledCall* call) {
  if (call->fork != nullptr) {
    call->fork->has_results = false;
    FinishFork(call);
    return std::nullopt;
  }
  Returned returned{call->origin.caller, call->origin.op, {}};
  for (Value& value : call->arguments->values) {
    returned.arguments.push_back(call->shares_arguments ? value.Copy() : value.Take());
  }
  calls_.Retire(call);
  return returned;
}

absl::Status CompiledCalls::TooDeep(const CompiledCall& call, bool is_too_deep) const {
  const CallNote* const note = context_->program.code->CallAt(call.interpreter.instruction());
  const CallSite& site = SiteOf(call.origin);
  const std::string& callee = note == nullptr ? site.callee_name : note->callee;
  const std::string& name = note == nullptr ? site.name : note->site;
  return RecursionTooDeep(*context_->run, callee, name, call.interpreter.depth() + 1, is_too_deep);
}

const CallSite& CompiledCalls::SiteOf(const CallOrigin& origin) const {
  return context_->program.SiteOf(origin.caller->region->ops[origin.op]);
}

// --- Forks ------------------------------------------------------------------------------------------

std::shared_ptr<Fork> CompiledCalls::SplitOff() {
  int64_t searched = 0;
  for (const std::unique_ptr<CompiledCall>& call : calls_.running()) {
    if (IsUnwanted(*call)) continue;
    searched += call->interpreter.depth() - call->origin.caller->depth;
    std::optional<ForkedCall> forked = call->interpreter.Fork();
    if (!forked) continue;
    auto fork = std::make_shared<Fork>();
    fork->owner = inbox_;
    fork->origin = call->origin;
    fork->arguments = call->arguments;
    fork->call = *std::move(forked);
    fork->split_from = call.get();
    fork->part_of = call->fork;
    call->shares_arguments = true;
    call->forks.push_back(fork);
    pace_.NoteForked();
    return fork;
  }
  pace_.NoteNothingFound(searched);
  return nullptr;
}

void CompiledCalls::StartFork(std::shared_ptr<Fork> fork) {
  if (fork->is_taken.exchange(true)) return;
  CompiledCall* const call = calls_.New();
  call->origin = fork->origin;
  call->arguments = fork->arguments;
  call->shares_arguments = true;
  call->fork = std::move(fork);
  if (call->interpreter.StartForked(call->fork->call)) return;  // the worker goes on with it
  const CallSite& site = SiteOf(call->origin);
  const int64_t depth = call->fork->call.depth + 1;
  context_->FailAt(RecursionTooDeep(*context_->run, site.callee_name, site.name, depth,
                                    /*is_too_deep=*/false),
                   call->origin.caller);
}

// Lets `call` take the result of its last fork, or makes the fork's call here if nobody has begun to. Returns false if
// neither is possible; the call then waits for the fork.
bool CompiledCalls::Join(CompiledCall* call) {
  const Fork& fork = *call->forks.back();
  if (fork.is_done) {
    call->interpreter.SupplyResults(fork.results);
  } else if (!call->forks.back()->is_taken.exchange(true)) {
    call->interpreter.CallAfterAll();
    pace_.NoteNotBegun();
  } else {
    calls_.Suspend(call);
    return false;
  }
  call->forks.pop_back();
  return true;
}

// Sends the results to the worker that waits for them.
void CompiledCalls::FinishFork(CompiledCall* call) {
  std::shared_ptr<Fork> fork = std::move(call->fork);
  const absl::Span<const uint64_t> results = call->interpreter.results();
  if (fork->has_results) fork->results.assign(results.begin(), results.end());
  calls_.Retire(call);
  Inbox* const owner = fork->owner;
  Message message(Message::Kind::kForkEnded, nullptr);
  message.fork = std::move(fork);
  owner->Post(std::move(message));
}

std::optional<CompiledCalls::Returned> CompiledCalls::EndFork(Fork* fork) {
  CompiledCall* const call = fork->split_from;
  if (call == nullptr) return std::nullopt;
  fork->is_done = true;
  if (call->ends_early || !fork->has_results) return EndEarly(call);
  pace_.NoteEnded(fork->calls);
  if (call->forks.back().get() == fork) calls_.WakeUp(call);
  return std::nullopt;
}

}  // namespace tensorflow_recursion
