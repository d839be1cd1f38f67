// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/compiled_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "cc/executor/depth_errors.h"
#include "cc/values/scalar_operators.h"

namespace tensorflow_recursion {
namespace {

// Compiled calls that weigh as much as one piece of a worker's work: between two looks at the world around it makes
// some 8,000.
constexpr int64_t kCallsPerPiece = 16;

// What is done at once when a worker has little of its budget left: suspending a call costs about as much.
constexpr int64_t kFewestCalls = 256;

bool Fits(const RegisterType& type, const Value& argument) {
  if (type.dtype == tensorflow::DT_INVALID) return !argument.is_empty();  // it is not read
  return type.is_array ? argument.tensor_or_null() != nullptr : argument.is_scalar();
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
  running_.push_back(NewCall());
  Call* const call = running_.back().get();
  call->caller = caller;
  call->op = op;
  call->function = SiteOf(*call).compiled;
  for (uint32_t i = 0; i < num_arguments; ++i) call->arguments.push_back(arguments[i].Take());
  ReadArguments(call);
  if (call->interpreter.Start(call->function->number, call->registers, caller->depth + 1)) return Resume();
  const CallSite& site = SiteOf(*call);
  Retire(call);
  context_->FailAt(RecursionTooDeep(context_->program.options, site.callee_name, site.name, caller->depth + 1,
                                    /*is_too_deep=*/false),
                   caller);
  return std::nullopt;
}

void CompiledCalls::ReadArguments(Call* call) {
  const std::vector<RegisterType>& types = context_->program.code->functions[call->function->number].arguments;
  for (size_t i = 0; i < types.size(); ++i) {
    const Value& argument = call->arguments[i];
    uint64_t bits = argument.is_scalar() ? argument.bits : 0;
    if (types[i].is_array) bits = ToBits(&call->arrays.emplace_back(*argument.tensor_or_null()));
    call->registers.push_back(bits);
  }
}

std::optional<CompiledCalls::Returned> CompiledCalls::Resume() {
  Call* const call = running_.back().get();
  while (true) {
    int64_t budget = std::max(context_->budget * kCallsPerPiece, kFewestCalls);
    const int64_t before = budget;
    const Interpreter::State state = call->interpreter.Resume(&budget);
    context_->Spend(static_cast<int>((before - budget) / kCallsPerPiece));
    switch (state) {
      case Interpreter::State::kDone:
        Finish(call);
        return std::nullopt;
      case Interpreter::State::kPaused:
        context_->PollSoon();
        return std::nullopt;
      case Interpreter::State::kNeedsKernel:
        if (RunKernel(call)) continue;
        return call->function->is_unfit.load(std::memory_order_relaxed) ? GiveBack(call) : std::nullopt;
      case Interpreter::State::kUnfit:
        call->function->is_unfit.store(true, std::memory_order_relaxed);
        return GiveBack(call);
      case Interpreter::State::kTooDeep:
      case Interpreter::State::kTooLarge:
        FailTooDeep(call, state == Interpreter::State::kTooDeep);
        return std::nullopt;
    }
  }
}

// Whether the call can go on. It can't after an error, nor if the result is no number: then the function is unfit.
bool CompiledCalls::RunKernel(Call* call) {
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
  if (!status.ok()) {
    context_->FailAt(status, call->caller, &call->interpreter);
  } else if (output.is_scalar()) {
    call->interpreter.SupplyResult(output.bits);
    return true;
  } else {
    call->function->is_unfit.store(true, std::memory_order_relaxed);
  }
  output.Release();
  return false;
}

void CompiledCalls::Finish(Call* call) {
  const std::vector<RegisterType>& types = context_->program.code->functions[call->function->number].results;
  std::vector<Value> results;
  for (size_t i = 0; i < types.size(); ++i) {
    const uint64_t bits = call->interpreter.results()[i];
    if (types[i].dtype == tensorflow::DT_INVALID) {
      results.push_back(Value::Empty());
      continue;
    }
    results.push_back(types[i].is_array ? Value::Own(new tensorflow::Tensor(*FromBits<const Array*>(bits)->tensor))
                                        : Value::Scalar(bits));
  }
  Frame* const caller = call->caller;
  const OpId op = call->op;
  Retire(call);
  for (uint32_t i = 0; i < results.size(); ++i) {
    if (!results[i].is_empty()) router_->DeliverResult(caller, op, i, results[i]);
  }
  frames_->EndCall(caller);
}

// It has done nothing that anybody could see, so it may begin anew.
std::optional<CompiledCalls::Returned> CompiledCalls::GiveBack(Call* call) {
  Returned returned{call->caller, call->op, std::move(call->arguments)};
  call->arguments.clear();
  Retire(call);
  return returned;
}

void CompiledCalls::FailTooDeep(Call* call, bool is_too_deep) {
  const CallNote* const note = context_->program.code->CallAt(call->interpreter.instruction());
  const CallSite& site = SiteOf(*call);
  const std::string& callee = note == nullptr ? site.callee_name : note->callee;
  const std::string& name = note == nullptr ? site.name : note->site;
  const absl::Status status =
      RecursionTooDeep(context_->program.options, callee, name, call->interpreter.depth() + 1, is_too_deep);
  context_->FailAt(status, call->caller, &call->interpreter);
}

const CallSite& CompiledCalls::SiteOf(const Call& call) const {
  return context_->program.sites[call.caller->region->ops[call.op].index];
}

std::unique_ptr<CompiledCalls::Call> CompiledCalls::NewCall() {
  if (idle_.empty()) return std::make_unique<Call>(*context_);
  std::unique_ptr<Call> call = std::move(idle_.back());
  idle_.pop_back();
  return call;
}

// Of the newest.
void CompiledCalls::Retire(Call* call) {
  for (Value& argument : call->arguments) argument.Release();
  call->arguments.clear();
  call->arrays.clear();
  call->registers.clear();
  call->interpreter.Trim();
  idle_.push_back(std::move(running_.back()));
  running_.pop_back();
}

void CompiledCalls::Clear() {
  while (!running_.empty()) Retire(running_.back().get());
}

}  // namespace tensorflow_recursion
