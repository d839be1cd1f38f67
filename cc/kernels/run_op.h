// The kernel of Recursion>Run runs a partition graph as one operator.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_RUN_OP_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_RUN_OP_H_

#include <memory>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "cc/kernels/static_program.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow_recursion {

// Builds the program and its kernels at the first run, when the session has this kernel already. All runs share them,
// also at the same time. A graph with calls that are not transformed is a function's, and is run as a WholeFunction.
class RunOp : public tensorflow::AsyncOpKernel {
 public:
  explicit RunOp(tensorflow::OpKernelConstruction* construction);

  void ComputeAsync(tensorflow::OpKernelContext* context, DoneCallback done) override;
  // So the kernel runs on the executor's own thread: a call that returns at once should not pay for another thread.
  bool IsExpensive() override { return false; }

 private:
  absl::Status EnsureBuilt(tensorflow::OpKernelContext* context);
  absl::Status Build(tensorflow::OpKernelContext* context);

  std::mutex mutex_;
  bool is_built_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status build_status_ ABSL_GUARDED_BY(mutex_);

  // These are written once under mutex_, and then constant.
  tensorflow::GraphDef graph_def_;
  bool holds_calls_ = false;
  DeadResults dead_results_ = DeadResults::kAreErrors;
  std::unique_ptr<RunnableProgram> program_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_RUN_OP_H_
