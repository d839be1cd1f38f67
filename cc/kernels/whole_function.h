// Runs a part of a function's graph that holds calls, on one device, as one program.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_WHOLE_FUNCTION_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_WHOLE_FUNCTION_H_

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cc/kernels/static_calls.h"
#include "cc/kernels/static_program.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow_recursion {

// Runs the part as a static program. In three cases TensorFlow's function runtime runs it as it is, and the kernels of
// its calls decide each for itself: while static execution is off, inside of a dynamic call, and if the part cannot be
// made static as a whole.
class WholeFunction : public RunnableProgram {
 public:
  // `name` is that of the kernel, unique in the process.
  static absl::Status Make(tensorflow::GraphDef graph, const std::string& name, DeadResults dead_results,
                           tensorflow::FunctionLibraryRuntime* library, std::unique_ptr<RunnableProgram>* program);

  void Run(tensorflow::OpKernelContext* context, tensorflow::AsyncOpKernel::DoneCallback done) const override;

 private:
  WholeFunction(tensorflow::FunctionLibraryRuntime* library, DeadResults dead_results,
                std::unique_ptr<StaticCalls> static_calls)
      : library_(library), dead_results_(dead_results), static_calls_(std::move(static_calls)) {}

  absl::StatusOr<const RunnableProgram*> Find(const tensorflow::OpKernelContext& context) const;
  absl::StatusOr<const RunnableProgram*> AsItIs() const;

  tensorflow::FunctionLibraryRuntime* const library_;
  const DeadResults dead_results_;
  const std::unique_ptr<StaticCalls> static_calls_;
  mutable std::mutex mu_;
  // Is made when it is needed.
  mutable std::unique_ptr<RunnableProgram> as_it_is_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_WHOLE_FUNCTION_H_
