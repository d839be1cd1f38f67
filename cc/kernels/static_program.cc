// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/static_program.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "cc/base/available_memory.h"
#include "cc/base/run_profile.h"
#include "cc/base/static_settings.h"
#include "cc/base/status.h"
#include "cc/base/tensorflow_compat.h"
#include "cc/executor/run_program.h"
#include "cc/kernels/run_cancellation.h"
#include "cc/kernels/spare_threads.h"
#include "cc/native/native_kernel.h"
#include "cc/passes/concat_gradients.h"
#include "cc/passes/reference_reads.h"
#include "cc/program/program_text.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/rendezvous.h"
#include "tensorflow/core/platform/cpu_info.h"
#include "tensorflow/core/util/determinism.h"
#include "tsl/profiler/lib/traceme.h"

namespace tensorflow_recursion {

using tensorflow::OpKernelContext;
using tensorflow::Tensor;

namespace {

// How long a run goes on with one worker. A step of a net over one sentence takes 100 to 300 us, and takes longer with
// two workers than with one. A step over a batch takes some milliseconds: after a run of more than kLongRun, the
// program's next one has several workers from its beginning.
constexpr absl::Duration kAlone = absl::Microseconds(200);
constexpr absl::Duration kLongRun = absl::Milliseconds(1);

std::vector<Value> Arguments(OpKernelContext* context, int count, const tensorflow::DeviceType& device) {
  std::vector<Value> arguments;
  arguments.reserve(count);
  for (int i = 0; i < count; ++i) {
    auto* const tensor = NewTensor(context->input(i));
    arguments.push_back(IsOnHost(device, context->input_memory_type(i)) ? ValueFromTensor(tensor) : Value::Own(tensor));
  }
  return arguments;
}

// Aborts what the step has in flight, so that a failed run ends instead of waiting for it.
void AbortStep(OpKernelContext* context, const absl::Status& status) {
  if (context->rendezvous() != nullptr) context->rendezvous()->StartAbort(status);
  if (context->cancellation_manager() != nullptr) context->cancellation_manager()->StartCancel();
}

absl::Status SetOutputs(OpKernelContext* context, const std::vector<Value>& retvals, DeadResults dead_results) {
  for (size_t i = 0; i < retvals.size(); ++i) {
    const int index = static_cast<int>(i);
    const tensorflow::DataType type = context->expected_output_dtype(index);
    if (!retvals[i].is_empty()) {
      context->set_output(index, TensorFromValue(retvals[i], type));
    } else if (dead_results == DeadResults::kAreEmpty) {
      context->set_output(index, DeadResult(type));
    } else {
      return InvalidArgument("Retval[", i, "] does not have value");
    }
  }
  return absl::OkStatus();
}

// One worker where TensorFlow's operators have to be deterministic: calls share the state of random operators, so with
// several workers chance decides which call draws which number.
int MaxWorkers(const OpKernelContext& context, const Options& options) {
  if (context.runner() == nullptr || context.run_all_kernels_inline()) return 1;
  if (tensorflow::OpDeterminismRequired()) return 1;
  if (options.workers > 0) return static_cast<int>(std::min<int64_t>(options.workers, 256));
  int workers = tensorflow::port::MaxParallelism();
  const int threads = InterOpThreads(context);
  if (threads > 0) workers = std::min(workers, threads);
  return std::max(1, workers);
}

}  // namespace

// A variant becomes a scalar without a value, because zeros can be made like that.
Tensor DeadResult(tensorflow::DataType type) {
  return type == tensorflow::DT_VARIANT ? Tensor(type, tensorflow::TensorShape({})) : Tensor(type);
}

absl::Status StaticProgram::Make(std::unique_ptr<tensorflow::Graph> graph, tensorflow::FunctionLibraryRuntime* library,
                                 const std::string& session_handle, std::unique_ptr<StaticProgram>* program) {
  TFR_RETURN_IF_ERROR(CheckMemoryReserveVariable());
  TFR_RETURN_IF_ERROR(ReadReferencesByKernels(graph.get()));
  tensorflow::Device* const device = library->device();
  if (device->device_type() == tensorflow::DEVICE_CPU && NativeKernelsAreOn()) {
    TFR_RETURN_IF_ERROR(MergeConcatGradients(graph.get()));
  }
  std::unique_ptr<StaticProgram> made(new StaticProgram(std::move(graph), library, session_handle));
  const auto variable_reads = session_handle.empty() ? VariableReads::kOncePerRecursion : VariableReads::kInEveryFrame;
  TFR_RETURN_IF_ERROR(made->BuildTables(variable_reads, &made->tables_));
  LogProgram(*made->tables_.program);
  *program = std::move(made);
  return absl::OkStatus();
}

StaticProgram::StaticProgram(std::unique_ptr<tensorflow::Graph> graph, tensorflow::FunctionLibraryRuntime* library,
                             const std::string& session_handle)
    : graph_(std::move(graph)),
      library_(library),
      session_handle_(session_handle),
      device_type_(library->device()->device_type()) {}

absl::Status StaticProgram::BuildTables(VariableReads variable_reads, Tables* tables) const {
  tensorflow::Device* const device = library_->device();
  const DeviceMemory memory(device->device_type(), [device](const tensorflow::TensorProto& proto, Tensor* tensor) {
    return device->MakeTensorFromProto(proto, tensorflow::AllocatorAttributes(), tensor);
  });
  TFR_RETURN_IF_ERROR(BuildProgram(*graph_, memory, variable_reads, &tables->program));
  // Both kinds of tables draw the same random numbers on.
  const KernelTable* const others = tables == &tables_ ? nullptr : &tables_.kernels;
  return tables->kernels.Build(*tables->program, library_, session_handle_, others);
}

absl::StatusOr<const StaticProgram::Tables*> StaticProgram::TablesWithoutSharedReads() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (without_shared_reads_ == nullptr) {
    auto tables = std::make_unique<Tables>();
    TFR_RETURN_IF_ERROR(BuildTables(VariableReads::kInEveryFrame, tables.get()));
    without_shared_reads_ = std::move(tables);
  }
  return without_shared_reads_.get();
}

void StaticProgram::Run(OpKernelContext* context, tensorflow::AsyncOpKernel::DoneCallback done) const {
  if (CanShareReads(context)) return RunWith(tables_, context, std::move(done));
  // A variable has no value. Frames that read it fail, but maybe none does.
  const absl::StatusOr<const Tables*> others = TablesWithoutSharedReads();
  if (others.ok()) return RunWith(**others, context, std::move(done));
  context->SetStatus(others.status());
  done();
}

bool StaticProgram::CanShareReads(OpKernelContext* context) const {
  const Program& program = *tables_.program;
  if (program.shared_reads.empty()) return true;
  StockKernelRunner runner(&tables_.kernels, context, context->cancellation_manager(), /*max_workers=*/1);
  return std::all_of(program.shared_reads.begin(), program.shared_reads.end(), [&](const ArgumentRead& read) {
    Value handle = Value::Own(NewTensor(context->input(read.argument)));
    Value value = Value::Empty();
    KernelCall call{&handle, &value, FrameTag(), /*worker=*/0, /*is_dead=*/false};
    const bool is_read = runner.Run(program.kernels[read.kernel], absl::MakeSpan(&call, 1)).ok() && !value.is_empty();
    handle.Release();
    value.Release();
    return is_read;
  });
}

void StaticProgram::RunWith(const Tables& tables, OpKernelContext* context,
                            tensorflow::AsyncOpKernel::DoneCallback done) const {
  const Program& program = *tables.program;
  const int max_workers = MaxWorkers(*context, program.options);
  std::shared_ptr<RunCancellation> cancellation = RunCancellation::Of(context->cancellation_manager());
  auto runner = std::make_shared<StockKernelRunner>(&tables.kernels, context, cancellation->manager(), max_workers);
  RunEnvironment environment;
  environment.program = &program;
  environment.runner = runner.get();
  environment.max_workers = max_workers;
  environment.alone = was_long_.load(std::memory_order_relaxed) ? absl::ZeroDuration() : kAlone;
  environment.spreads_main_graph = context->runner() != nullptr && !context->run_all_kernels_inline();
  environment.schedule = [context](std::function<void()> work) {
    if (context->runner() != nullptr) {
      (*context->runner())(std::move(work));
    } else {
      context->env()->SchedClosure(std::move(work));
    }
  };
  // Where kernels run on the thread that calls, that one waits for the run, and there is no thread to give back.
  if (!context->run_all_kernels_inline()) environment.start_thread = &RunOnSpareThread;
  environment.is_cancelled = [cancellation] { return cancellation->IsCancelled(); };
  environment.on_error = [context](const absl::Status& status) { AbortStep(context, status); };
  if (counts_calls_) environment.on_main_call = [] { NoteOutermostCall(/*is_static=*/true); };
  environment.trace = runner->is_traced() || tsl::profiler::TraceMe::Active(tsl::profiler::kInfo);
  environment.profiles = IsProfiling();
  RunProgram(std::move(environment), Arguments(context, static_cast<int>(argument_types().size()), device_type_),
             [this, context, runner, cancellation, begin = absl::Now(), done = std::move(done)](
                 absl::Status status, std::vector<Value> retvals) {
               was_long_.store(absl::Now() - begin > kLongRun, std::memory_order_relaxed);
               if (status.ok()) status = SetOutputs(context, retvals, dead_results_);
               for (Value& value : retvals) value.Release();
               if (!status.ok()) context->SetStatus(status);
               cancellation->End(done);
             });
}

}  // namespace tensorflow_recursion
