// Runs a graph by TensorFlow's function runtime in place of a kernel.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_FUNCTION_PROGRAM_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_FUNCTION_PROGRAM_H_

#include <memory>

#include "absl/status/status.h"
#include "cc/kernels/static_program.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Makes a function of a graph, which lies between `_Arg` and `_Retval` nodes on the device of `library`. Made once,
// then constant, as a StaticProgram is.
class FunctionProgram : public RunnableProgram {
 public:
  // Makes the program of a transformed graph on several devices of the process. TensorFlow places and divides it. Each
  // device runs its part as a Recursion>Run, which CompositePass makes of the part as it does in a session.
  static absl::Status MakeSpread(const tensorflow::Graph& graph, tensorflow::FunctionLibraryRuntime* library,
                                 std::unique_ptr<RunnableProgram>* program);

  // Makes the program of a graph that is run as it is, as a part of the step around it.
  static absl::Status MakePlain(const tensorflow::Graph& graph, tensorflow::FunctionLibraryRuntime* library,
                                DeadResults dead_results, std::unique_ptr<RunnableProgram>* program);

  void Run(tensorflow::OpKernelContext* context, tensorflow::AsyncOpKernel::DoneCallback done) const override;

 private:
  FunctionProgram(tensorflow::FunctionLibraryRuntime* library, bool is_spread, DeadResults dead_results)
      : library_(library), is_spread_(is_spread), dead_results_(dead_results) {}

  static absl::Status Make(const tensorflow::Graph& graph, tensorflow::FunctionLibraryRuntime* library, bool is_spread,
                           DeadResults dead_results, std::unique_ptr<RunnableProgram>* program);

  tensorflow::FunctionLibraryRuntime* const library_;
  const bool is_spread_;
  const DeadResults dead_results_;
  std::unique_ptr<tensorflow::FunctionLibraryDefinition> functions_;
  tensorflow::FunctionLibraryRuntime::Handle handle_ = tensorflow::kInvalidHandle;
  int num_arguments_ = 0;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_FUNCTION_PROGRAM_H_
