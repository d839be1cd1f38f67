// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/run_op.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/base/tensorflow_compat.h"
#include "cc/executor/run_program.h"
#include "cc/kernels/reference_reads.h"
#include "cc/kernels/spare_threads.h"
#include "cc/program/program_text.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/rendezvous.h"
#include "tensorflow/core/platform/cpu_info.h"

namespace tensorflow_recursion {

using tensorflow::OpKernel;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

namespace {

std::vector<Value> Arguments(OpKernelContext* context, const tensorflow::DeviceType& device) {
  std::vector<Value> arguments;
  arguments.reserve(context->num_inputs());
  for (int i = 0; i < context->num_inputs(); ++i) {
    auto* const tensor = new Tensor(context->input(i));
    arguments.push_back(IsOnHost(device, context->input_memory_type(i)) ? ValueFromTensor(tensor) : Value::Own(tensor));
  }
  return arguments;
}

// Aborts what the step has in flight, so that a failed run ends instead of waiting for it.
void AbortStep(OpKernelContext* context, const absl::Status& status) {
  if (context->rendezvous() != nullptr) context->rendezvous()->StartAbort(status);
  if (context->cancellation_manager() != nullptr) context->cancellation_manager()->StartCancel();
}

// The run's own cancellation, for its kernels. Cancelling thousands of receives takes a while, and a gRPC master
// cancels a step on the thread that takes the next one's requests: the step's cancellation only starts ours on another
// thread.
class Cancellation {
 public:
  static std::shared_ptr<Cancellation> Of(tensorflow::CancellationManager* step) {
    std::shared_ptr<Cancellation> run(new Cancellation(step));
    if (step == nullptr) return run;
    run->token_ = step->get_cancellation_token();
    auto start = [run] { RunOnSpareThread([run] { run->manager.StartCancel(); }); };
    if (!step->RegisterCallback(run->token_, start)) run->manager.StartCancel();
    return run;
  }

  bool IsCancelled() { return manager.IsCancelled() || (step_ != nullptr && step_->IsCancelled()); }
  // When nothing of the run is in flight any more.
  void End() {
    if (step_ != nullptr) step_->TryDeregisterCallback(token_);
  }

  tensorflow::CancellationManager manager;

 private:
  explicit Cancellation(tensorflow::CancellationManager* step) : step_(step) {}

  tensorflow::CancellationManager* const step_;
  tensorflow::CancellationToken token_ = 0;
};

absl::Status SetOutputs(OpKernelContext* context, const std::vector<Value>& retvals) {
  for (size_t i = 0; i < retvals.size(); ++i) {
    const int index = static_cast<int>(i);
    if (retvals[i].is_empty()) return InvalidArgument("Retval[", i, "] does not have value");
    context->set_output(index, TensorFromValue(retvals[i], context->expected_output_dtype(index)));
  }
  return absl::OkStatus();
}

// The kernel of an inner Run might be the outer one's own, which would run itself without end.
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

RunOp::RunOp(tensorflow::OpKernelConstruction* construction)
    : AsyncOpKernel(construction), device_type_(construction->device_type()) {
  std::string serialized;
  OP_REQUIRES_OK(construction, construction->GetAttr(kGraphAttr, &serialized));
  OP_REQUIRES(construction, graph_def_.ParseFromString(serialized),
              InvalidArgument("Node '", name(), "': attribute 'graph' is not a serialized GraphDef"));
}

absl::Status RunOp::EnsureBuilt(OpKernelContext* context) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (is_built_) return build_status_;
  build_status_ = Build(context);
  is_built_ = true;
  return build_status_;
}

absl::Status RunOp::Build(OpKernelContext* context) {
  tensorflow::FunctionLibraryRuntime* library = context->function_library();
  if (library == nullptr) return absl::InternalError("Recursion>Run needs a function library runtime");
  graph_ = std::make_unique<tensorflow::Graph>(*library->GetFunctionLibraryDefinition());
  tensorflow::GraphConstructorOptions options;
  options.allow_internal_ops = true;
  TFR_RETURN_IF_ERROR(tensorflow::ConvertGraphDefToGraph(options, std::move(graph_def_), graph_.get()));
  TFR_RETURN_IF_ERROR(CheckHoldsNoRun(*graph_));
  TFR_RETURN_IF_ERROR(ReadReferencesByKernels(graph_.get()));
  tensorflow::Device* const device = library->device();
  const DeviceMemory memory(device->device_type(), [device](const tensorflow::TensorProto& proto, Tensor* tensor) {
    return device->MakeTensorFromProto(proto, tensorflow::AllocatorAttributes(), tensor);
  });
  TFR_RETURN_IF_ERROR(BuildProgram(*graph_, memory, &program_));
  LogProgram(*program_);
  if (program_->argument_types != input_types() || program_->retval_types != output_types()) {
    return InvalidArgument("Node '", name(), "': its inputs and outputs are not those of its graph");
  }
  return kernels_.Build(*program_, library, SessionHandleOf(device->op_segment(), *this));
}

int RunOp::MaxWorkers(const OpKernelContext* context) const {
  if (context->runner() == nullptr || context->run_all_kernels_inline()) return 1;
  if (program_->options.workers > 0) return static_cast<int>(std::min<int64_t>(program_->options.workers, 256));
  int workers = tensorflow::port::MaxParallelism();
  const int threads = InterOpThreads(*context);
  if (threads > 0) workers = std::min(workers, threads);
  return std::max(1, workers);
}

void RunOp::ComputeAsync(OpKernelContext* context, DoneCallback done) {
  OP_REQUIRES_OK_ASYNC(context, EnsureBuilt(context), done);
  const int max_workers = MaxWorkers(context);
  std::shared_ptr<Cancellation> cancellation = Cancellation::Of(context->cancellation_manager());
  auto runner = std::make_shared<TfKernelRunner>(&kernels_, context, &cancellation->manager, max_workers);
  RunEnvironment environment;
  environment.program = program_.get();
  environment.runner = runner.get();
  environment.max_workers = max_workers;
  environment.schedule = [context](std::function<void()> work) {
    if (context->runner() != nullptr) {
      (*context->runner())(std::move(work));
    } else {
      context->env()->SchedClosure(std::move(work));
    }
  };
  environment.start_thread = &RunOnSpareThread;
  environment.is_cancelled = [cancellation] { return cancellation->IsCancelled(); };
  environment.on_error = [context](const absl::Status& status) { AbortStep(context, status); };
  environment.trace = context->stats_collector() != nullptr;
  RunProgram(std::move(environment), Arguments(context, device_type_),
             [context, runner, cancellation, done = std::move(done)](absl::Status status, std::vector<Value> retvals) {
               cancellation->End();
               if (status.ok()) status = SetOutputs(context, retvals);
               for (Value& value : retvals) value.Release();
               if (!status.ok()) context->SetStatus(status);
               done();
             });
}

}  // namespace tensorflow_recursion
