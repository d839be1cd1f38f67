// SPDX-License-Identifier: Apache-2.0
#include "cc/kernels/spread_program.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

// One run: what must live until its end.
struct Flight {
  explicit Flight(FunctionLibraryRuntime* library) : rendezvous(library->device_mgr()) {}

  // Of its own: the keys of what devices send each other would be those of another call of the same function.
  tensorflow::PrivateIntraProcessRendezvous rendezvous;
  std::vector<Tensor> arguments;
  std::vector<Tensor> results;
};

FunctionLibraryRuntime::Options RunOptions(const OpKernelContext& context, FunctionLibraryRuntime* library,
                                           Flight* flight) {
  FunctionLibraryRuntime::Options options(context.step_id());
  options.rendezvous = &flight->rendezvous;
  options.cancellation_manager = context.cancellation_manager();
  options.collective_executor = context.collective_executor();
  options.step_container = context.step_container();
  options.stats_collector = context.stats_collector();
  // Parts that wait for each other cannot all run in the thread of the caller.
  if (!context.run_all_kernels_inline()) options.runner = context.runner();
  options.source_device = library->device()->name();
  return options;
}

}  // namespace

absl::Status SpreadProgram::Make(const tensorflow::Graph& graph, FunctionLibraryRuntime* library,
                                 std::unique_ptr<RunnableProgram>* program) {
  static std::atomic<int64_t> next_id{0};  // calls are made ready by several threads at once
  const std::string name = absl::StrCat("recursion_call_", next_id.fetch_add(1));
  tensorflow::FunctionDef function;
  TFR_RETURN_IF_ERROR(tensorflow::GraphToFunctionDef(graph, name, &function));
  std::unique_ptr<SpreadProgram> made(new SpreadProgram(library));
  made->functions_ = std::make_unique<tensorflow::FunctionLibraryDefinition>(graph.flib_def());
  TFR_RETURN_IF_ERROR(made->functions_->AddFunctionDef(function));
  made->num_arguments_ = CountIf(graph, &Node::IsArg);

  FunctionLibraryRuntime::InstantiateOptions options;
  options.target = library->device()->name();
  options.is_multi_device_function = true;
  options.input_devices.assign(made->num_arguments_, options.target);
  options.output_devices.assign(CountIf(graph, &Node::IsRetval), options.target);
  options.lib_def = made->functions_.get();
  options.state_handle = name;
  TFR_RETURN_IF_ERROR(library->Instantiate(name, tensorflow::AttrSlice(), options, &made->handle_));
  *program = std::move(made);
  return absl::OkStatus();
}

void SpreadProgram::Run(OpKernelContext* context, tensorflow::AsyncOpKernel::DoneCallback done) const {
  auto flight = std::make_shared<Flight>(library_);
  for (int i = 0; i < num_arguments_; ++i) flight->arguments.push_back(context->input(i));
  library_->Run(RunOptions(*context, library_, flight.get()), handle_, flight->arguments, &flight->results,
                [context, flight, done = std::move(done)](const absl::Status& status) {
                  if (!status.ok()) context->SetStatus(status);
                  for (size_t i = 0; status.ok() && i < flight->results.size(); ++i) {
                    context->set_output(static_cast<int>(i), flight->results[i]);
                  }
                  done();
                });
}

}  // namespace tensorflow_recursion
