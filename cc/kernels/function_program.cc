// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/function_program.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "cc/base/static_settings.h"
#include "cc/base/status.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/rendezvous_mgr.h"
#include "tensorflow/core/framework/graph_to_functiondef.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::FunctionLibraryRuntime;
using tensorflow::Node;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;

int CountIf(const tensorflow::Graph& graph, bool (Node::*is)() const) {
  const auto nodes = graph.op_nodes();
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(), [is](const Node* node) { return (node->*is)(); }));
}

// What must live until the end of a run.
struct Flight {
  // The run's own rendezvous, if it has one.
  std::unique_ptr<tensorflow::PrivateIntraProcessRendezvous> rendezvous;
  std::vector<Tensor> arguments;
  std::vector<Tensor> results;
};

FunctionLibraryRuntime::Options RunOptions(const OpKernelContext& context, const std::string& device) {
  FunctionLibraryRuntime::Options options(context.step_id());
  options.rendezvous = context.rendezvous();
  options.cancellation_manager = context.cancellation_manager();
  options.collective_executor = context.collective_executor();
  options.step_container = context.step_container();
  options.stats_collector = context.stats_collector();
  options.runner = context.runner();
  options.run_all_kernels_inline = context.run_all_kernels_inline();
  options.source_device = device;
  return options;
}

FunctionLibraryRuntime::InstantiateOptions SpreadOptions(const tensorflow::Graph& graph, const std::string& device) {
  FunctionLibraryRuntime::InstantiateOptions options;
  options.is_multi_device_function = true;
  options.input_devices.assign(CountIf(graph, &Node::IsArg), device);
  options.output_devices.assign(CountIf(graph, &Node::IsRetval), device);
  return options;
}

}  // namespace

absl::Status FunctionProgram::MakeSpread(const tensorflow::Graph& graph, FunctionLibraryRuntime* library,
                                         std::unique_ptr<RunnableProgram>* program) {
  return Make(graph, library, /*is_spread=*/true, DeadResults::kAreErrors, program);
}

absl::Status FunctionProgram::MakePlain(const tensorflow::Graph& graph, FunctionLibraryRuntime* library,
                                        DeadResults dead_results, std::unique_ptr<RunnableProgram>* program) {
  return Make(graph, library, /*is_spread=*/false, dead_results, program);
}

absl::Status FunctionProgram::Make(const tensorflow::Graph& graph, FunctionLibraryRuntime* library, bool is_spread,
                                   DeadResults dead_results, std::unique_ptr<RunnableProgram>* program) {
  static std::atomic<int64_t> next_id{0};  // atomic, because several threads may make programs at once
  const std::string name = absl::StrCat(kCallFunctionPrefix, next_id.fetch_add(1));
  tensorflow::FunctionDef function;
  TFR_RETURN_IF_ERROR(tensorflow::GraphToFunctionDef(graph, name, &function));
  std::unique_ptr<FunctionProgram> made(new FunctionProgram(library, is_spread, dead_results));
  made->functions_ = std::make_unique<tensorflow::FunctionLibraryDefinition>(graph.flib_def());
  TFR_RETURN_IF_ERROR(made->functions_->AddFunctionDef(function));
  made->num_arguments_ = CountIf(graph, &Node::IsArg);

  const std::string& device = library->device()->name();
  FunctionLibraryRuntime::InstantiateOptions options;
  if (is_spread) options = SpreadOptions(graph, device);
  options.target = device;
  options.lib_def = made->functions_.get();
  options.state_handle = name;
  TFR_RETURN_IF_ERROR(library->Instantiate(name, tensorflow::AttrSlice(), options, &made->handle_));
  *program = std::move(made);
  return absl::OkStatus();
}

void FunctionProgram::Run(OpKernelContext* context, tensorflow::AsyncOpKernel::DoneCallback done) const {
  auto flight = std::make_shared<Flight>();
  FunctionLibraryRuntime::Options options = RunOptions(*context, library_->device()->name());
  options.allow_dead_tensors = dead_results_ == DeadResults::kAreEmpty;
  if (is_spread_) {
    NoteOutermostCall(/*is_static=*/true);
    // Each call has a rendezvous of its own, because devices send each other values with the same keys in another call
    // of the same function.
    flight->rendezvous = std::make_unique<tensorflow::PrivateIntraProcessRendezvous>(library_->device_mgr());
    options.rendezvous = flight->rendezvous.get();
    // Parts that wait for each other cannot all run in the thread of the caller.
    if (options.run_all_kernels_inline) options.runner = nullptr;
    options.run_all_kernels_inline = false;
  }
  for (int i = 0; i < num_arguments_; ++i) flight->arguments.push_back(context->input(i));
  library_->Run(options, handle_, flight->arguments, &flight->results,
                [context, flight, done = std::move(done)](const absl::Status& status) {
                  if (!status.ok()) context->SetStatus(status);
                  for (size_t i = 0; status.ok() && i < flight->results.size(); ++i) {
                    const tensorflow::DataType type = context->expected_output_dtype(static_cast<int>(i));
                    const bool is_dead = flight->results[i].dtype() != type;
                    context->set_output(static_cast<int>(i), is_dead ? DeadResult(type) : flight->results[i]);
                  }
                  done();
                });
}

}  // namespace tensorflow_recursion
