// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/whole_function.h"

#include <utility>

#include "cc/base/status.h"
#include "cc/kernels/function_program.h"
#include "cc/kernels/invocation.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

using tensorflow::FunctionLibraryRuntime;
using tensorflow::GraphDef;
using tensorflow::OpKernelContext;

absl::Status WholeFunction::Make(GraphDef graph, const std::string& name, DeadResults dead_results,
                                 FunctionLibraryRuntime* library, std::unique_ptr<RunnableProgram>* program) {
  absl::StatusOr<std::unique_ptr<StaticCalls>> calls = StaticCalls::MakeWhole(std::move(graph), name, dead_results);
  TFR_RETURN_IF_ERROR(calls.status());
  program->reset(new WholeFunction(library, dead_results, *std::move(calls)));
  return absl::OkStatus();
}

void WholeFunction::Run(OpKernelContext* context, tensorflow::AsyncOpKernel::DoneCallback done) const {
  const absl::StatusOr<const RunnableProgram*> program = Find(*context);
  OP_REQUIRES_OK_ASYNC(context, program.status(), done);
  (*program)->Run(context, std::move(done));
}

absl::StatusOr<const RunnableProgram*> WholeFunction::Find(const OpKernelContext& context) const {
  if (IsInsideOfInvocation(context)) return AsItIs();
  absl::StatusOr<const RunnableProgram*> found = static_calls_->Find(library_);
  return found.ok() && *found == nullptr ? AsItIs() : found;
}

absl::StatusOr<const RunnableProgram*> WholeFunction::AsItIs() const {
  const std::lock_guard<std::mutex> lock(mu_);
  if (as_it_is_ != nullptr) return as_it_is_.get();
  tensorflow::Graph graph(*library_->GetFunctionLibraryDefinition());
  tensorflow::GraphConstructorOptions options;
  options.allow_internal_ops = true;
  TFR_RETURN_IF_ERROR(tensorflow::ConvertGraphDefToGraph(options, static_calls_->graph(), &graph));
  TFR_RETURN_IF_ERROR(FunctionProgram::MakePlain(graph, library_, dead_results_, &as_it_is_));
  return as_it_is_.get();
}

}  // namespace tensorflow_recursion
