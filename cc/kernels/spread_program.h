// A static graph on several devices of the process: a function that TensorFlow's runtime places, cuts and runs.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_SPREAD_PROGRAM_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_SPREAD_PROGRAM_H_

#include <memory>

#include "absl/status/status.h"
#include "cc/kernels/static_program.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Each device runs its part as a Recursion>Run, which CompositePass makes of the part as in a session. Made once, then
// constant, as a StaticProgram is.
class SpreadProgram : public RunnableProgram {
 public:
  // `graph` lies between `_Arg` and `_Retval` nodes on the device of `library`.
  static absl::Status Make(const tensorflow::Graph& graph, tensorflow::FunctionLibraryRuntime* library,
                           std::unique_ptr<RunnableProgram>* program);

  void Run(tensorflow::OpKernelContext* context, tensorflow::AsyncOpKernel::DoneCallback done) const override;

 private:
  explicit SpreadProgram(tensorflow::FunctionLibraryRuntime* library) : library_(library) {}

  tensorflow::FunctionLibraryRuntime* const library_;
  std::unique_ptr<tensorflow::FunctionLibraryDefinition> functions_;
  tensorflow::FunctionLibraryRuntime::Handle handle_ = tensorflow::kInvalidHandle;
  int num_arguments_ = 0;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_SPREAD_PROGRAM_H_
