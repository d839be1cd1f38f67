// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/invoke_op.h"

#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "cc/base/static_settings.h"
#include "cc/base/status.h"
#include "cc/kernels/callee_check.h"
#include "cc/kernels/invocation.h"
#include "cc/kernels/recursion.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataTypeVector;
using tensorflow::FunctionLibraryRuntime;
using tensorflow::OpKernelContext;

absl::Status ReadMaxDepth(int64_t* depth) {
  const char* text = std::getenv(kDynamicMaxDepthVariable);
  if (text == nullptr || *text == '\0') return absl::OkStatus();
  if (!absl::SimpleAtoi(text, depth) || *depth < 1) {
    return InvalidArgument("Environment variable ", kDynamicMaxDepthVariable, " is '", text,
                           "', expected an integer >= 1");
  }
  return absl::OkStatus();
}

}  // namespace

InvokeOp::InvokeOp(tensorflow::OpKernelConstruction* ctx) : AsyncOpKernel(ctx) {
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kCalleeAttr, &function_));
  OP_REQUIRES_OK(ctx, ReadMaxDepth(&max_depth_));
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kArgumentTypesAttr, &arguments_));
  bool is_static = false;
  if (tensorflow::TryGetNodeAttr(ctx->def(), kStaticAttr, &is_static) && is_static) {
    absl::StatusOr<std::unique_ptr<StaticCalls>> calls = StaticCalls::Make(ctx->def(), ctx->device()->name());
    OP_REQUIRES_OK(ctx, calls.status());
    static_calls_ = *std::move(calls);
  }
  key_ = tensorflow::Canonicalize(function(), tensorflow::AttrSlice(&function_.attr()));
  if (ctx->function_library() != nullptr) {
    OP_REQUIRES_OK(ctx, CheckDefinition(*ctx->function_library()));
  }
}

InvokeOp::~InvokeOp() {
  for (Target* target = targets_.load(); target != nullptr;) delete std::exchange(target, target->next);
}

void InvokeOp::ComputeAsync(OpKernelContext* ctx, DoneCallback done) {
  OP_REQUIRES_ASYNC(ctx, ctx->function_library() != nullptr,
                    absl::InternalError(absl::StrCat("Call '", name(), "': no function library here")), done);
  ctx->set_output(num_results(), no_record_);
  if (static_calls_ != nullptr && !IsInsideOfInvocation(*ctx)) {
    const absl::StatusOr<const RunnableProgram*> program = static_calls_->Find(ctx->function_library());
    OP_REQUIRES_OK_ASYNC(ctx, program.status(), done);
    if (*program != nullptr) return (*program)->Run(ctx, std::move(done));
    NoteOutermostCall(/*is_static=*/false);
  }
  StartInvocation(*this, ctx, std::move(done));
}

absl::StatusOr<FunctionLibraryRuntime::Handle> InvokeOp::HandleIn(FunctionLibraryRuntime* library,
                                                                  Recursion& recursion) {
  const auto find = [&]() -> const Target* {
    const Target* target = targets_.load(std::memory_order_acquire);  // sees what the release below has written
    while (target != nullptr && target->library != library) target = target->next;
    return target;
  };
  if (const Target* target = find()) return target->handle;
  TFR_RETURN_IF_ERROR(CheckDefinition(*library));
  std::lock_guard<std::mutex> lock(recursion.mu);
  std::lock_guard<std::mutex> kernel_lock(mu_);
  if (const Target* target = find()) return target->handle;
  auto made = std::make_unique<Target>(Target{library, tensorflow::kInvalidHandle, targets_.load()});
  FunctionLibraryRuntime::Handle& shared =
      recursion.handles.try_emplace(key_, tensorflow::kInvalidHandle).first->second;
  if (shared == tensorflow::kInvalidHandle) TFR_RETURN_IF_ERROR(Instantiate(library, &shared));
  made->handle = shared;
  targets_.store(made.get(), std::memory_order_release);
  return made.release()->handle;
}

absl::Status InvokeOp::Instantiate(FunctionLibraryRuntime* library, FunctionLibraryRuntime::Handle* handle) const {
  const absl::Status made = library->Instantiate(function(), tensorflow::AttrSlice(&function_.attr()), handle);
  if (made.ok()) return absl::OkStatus();
  *handle = tensorflow::kInvalidHandle;
  return InvalidArgument("Function '", UserName(function()), "': ", made.message());
}

absl::Status InvokeOp::CheckDefinition(const FunctionLibraryRuntime& library) const {
  DataTypeVector results = output_types();
  results.pop_back();  // the record
  return CheckCallee(*library.GetFunctionLibraryDefinition(), function_, {name(), arguments_, results});
}

}  // namespace tensorflow_recursion
