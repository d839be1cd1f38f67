// The kernel of Recursion>Invoke: runs the callee, as a static program or through the function runtime.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_INVOKE_OP_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_INVOKE_OP_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "cc/kernels/static_calls.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow_recursion {

// Depth of dynamic recursion that ends in ResourceExhausted unless the environment variable
// kDynamicMaxDepthVariable says otherwise. A call takes 2 to 3 KB, and as much again for every other
// call of the same body that waits its turn: a runaway recursion ends near 1 GiB, in seconds.
inline constexpr int64_t kDefaultDynamicMaxDepth = 250'000;
inline constexpr char kDynamicMaxDepthVariable[] = "TENSORFLOW_RECURSION_DYNAMIC_MAX_DEPTH";

struct Recursion;

// A node that says so, and is called by no other call of ours, runs as a static program that the kernel makes at its
// first run. Otherwise each call is one run of the callee's own executor, as for any function of stock TensorFlow:
// dynamic execution, the baseline of the static one.
//
// The constructor checks the node against the callee's definition. ComputeAsync may run concurrently.
class InvokeOp : public tensorflow::AsyncOpKernel {
 public:
  explicit InvokeOp(tensorflow::OpKernelConstruction* ctx);
  ~InvokeOp() override;

  // The kernel only starts the callee, whose kernels decide for themselves.
  bool IsExpensive() override { return false; }

  void ComputeAsync(tensorflow::OpKernelContext* ctx, DoneCallback done) override;

  // How many arguments and results the callee has. The kernel may have more inputs, which are not passed on, and has
  // one more output, an empty record: a caller that reads the record calls the function that returns one.
  int num_arguments() const { return static_cast<int>(arguments_.size()); }
  int num_results() const { return num_outputs() - 1; }

  const std::string& function() const { return function_.name(); }
  int64_t max_depth() const { return max_depth_; }

  // The callee's handle in `library`, instantiated at the first call of each recursion's first kernel.
  absl::StatusOr<tensorflow::FunctionLibraryRuntime::Handle> HandleIn(tensorflow::FunctionLibraryRuntime* library,
                                                                      Recursion& recursion);

 private:
  // A session keeps this kernel and uses it under several function runtimes, one per set of fetches.
  struct Target {
    tensorflow::FunctionLibraryRuntime* library;
    tensorflow::FunctionLibraryRuntime::Handle handle;
    Target* next;
  };

  absl::Status Instantiate(tensorflow::FunctionLibraryRuntime* library,
                           tensorflow::FunctionLibraryRuntime::Handle* handle) const;
  absl::Status CheckDefinition(const tensorflow::FunctionLibraryRuntime& library) const;

  tensorflow::NameAttrList function_;
  std::unique_ptr<StaticCalls> static_calls_;  // null: all calls are dynamic
  tensorflow::DataTypeVector arguments_;       // types of those that are passed on
  const tensorflow::Tensor no_record_{tensorflow::DT_VARIANT, tensorflow::TensorShape({})};
  std::string key_;  // of the callee with its attributes
  int64_t max_depth_ = kDefaultDynamicMaxDepth;
  std::mutex mu_;
  std::atomic<Target*> targets_{nullptr};  // grows under mu_, is read without it by every call
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_INVOKE_OP_H_
