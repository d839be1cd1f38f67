// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/run_op.h"

#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/base/tensorflow_compat.h"
#include "cc/kernels/whole_function.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

using tensorflow::OpKernelContext;

namespace {

// Checks that no Run is inside of the graph: its kernel might be that of the outer one, which would run itself without
// end.
absl::Status CheckHoldsNoRun(const tensorflow::Graph& graph) {
  for (const tensorflow::Node* node : graph.op_nodes()) {
    if (node->type_string() == kRunOp) {
      return InvalidArgument("Node '", node->name(), "': a ", kRunOp, " stands inside of another; only the graph of a ",
                             "partition, which has none, is run by one");
    }
  }
  return absl::OkStatus();
}

}  // namespace

RunOp::RunOp(tensorflow::OpKernelConstruction* construction) : AsyncOpKernel(construction) {
  std::string serialized;
  OP_REQUIRES_OK(construction, construction->GetAttr(kGraphAttr, &serialized));
  OP_REQUIRES(construction, graph_def_.ParseFromString(serialized),
              InvalidArgument("Node '", name(), "': attribute 'graph' is not a serialized GraphDef"));
  (void)tensorflow::TryGetNodeAttr(construction->def(), kHoldsCallsAttr, &holds_calls_);
  bool is_of_function = false;
  (void)tensorflow::TryGetNodeAttr(construction->def(), kIsOfFunctionAttr, &is_of_function);
  if (is_of_function) dead_results_ = DeadResults::kAreEmpty;
}

absl::Status RunOp::EnsureBuilt(OpKernelContext* context) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (is_built_) return build_status_;
  build_status_ = Build(context);
  is_built_ = true;
  return build_status_;
}

absl::Status RunOp::Build(OpKernelContext* context) {
  tensorflow::FunctionLibraryRuntime* library = context->function_library();
  if (library == nullptr) return absl::InternalError(absl::StrCat(kRunOp, " needs a function library runtime"));
  if (holds_calls_) return WholeFunction::Make(std::move(graph_def_), name(), dead_results_, library, &program_);
  auto graph = std::make_unique<tensorflow::Graph>(*library->GetFunctionLibraryDefinition());
  tensorflow::GraphConstructorOptions options;
  options.allow_internal_ops = true;
  TFR_RETURN_IF_ERROR(tensorflow::ConvertGraphDefToGraph(options, std::move(graph_def_), graph.get()));
  TFR_RETURN_IF_ERROR(CheckHoldsNoRun(*graph));
  std::unique_ptr<StaticProgram> program;
  const std::string session = SessionHandleOf(library->device()->op_segment(), *this);
  TFR_RETURN_IF_ERROR(StaticProgram::Make(std::move(graph), library, session, &program));
  if (program->argument_types() != input_types() || program->retval_types() != output_types()) {
    return InvalidArgument("Node '", name(), "': its inputs and outputs are not those of its graph");
  }
  program_ = std::move(program);
  return absl::OkStatus();
}

void RunOp::ComputeAsync(OpKernelContext* context, DoneCallback done) {
  OP_REQUIRES_OK_ASYNC(context, EnsureBuilt(context), done);
  program_->Run(context, std::move(done));
}

}  // namespace tensorflow_recursion
