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

// How deep dynamic calls may nest before they end in ResourceExhausted, unless the environment variable
// kDynamicMaxDepthVariable says otherwise. A call takes 2 to 3 KB, and as much again for every other call of the same
// body that waits for its turn. So a runaway recursion ends near 1 GiB, in seconds.
inline constexpr int64_t kDefaultDynamicMaxDepth = 250'000;
inline constexpr char kDynamicMaxDepthVariable[] = "TENSORFLOW_RECURSION_DYNAMIC_MAX_DEPTH";

struct Recursion;

// If the node has the attribute kStaticAttr, and no other call of ours is around it, the call runs as a static program,
// which the kernel makes at its first run. Otherwise the call is dynamic: one run of the callee's own executor, as for
// any function of stock TensorFlow.
//
// The constructor checks the node against the callee's definition. ComputeAsync may run concurrently.
class InvokeOp : public tensorflow::AsyncOpKernel {
 public:
  explicit InvokeOp(tensorflow::OpKernelConstruction* ctx);
  ~InvokeOp() override;

  // The kernel only starts the callee. Whether that is expensive is for the callee's kernels to say.
  bool IsExpensive() override { return false; }

  void ComputeAsync(tensorflow::OpKernelContext* ctx, DoneCallback done) override;

  // How many arguments and results the callee has. The kernel may have more inputs, which are not passed on, and has
  // one more output, an empty record: a caller that reads the record calls the function that returns one.
  int num_arguments() const { return static_cast<int>(arguments_.size()); }
  int num_results() const { return num_outputs() - 1; }

  const std::string& function() const { return function_.name(); }
  int64_t max_depth() const { return max_depth_; }

  // The callee's handle in `library`. The first call of a recursion instantiates it, and all calls of that callee in
  // the recursion share it.
  absl::StatusOr<tensorflow::FunctionLibraryRuntime::Handle> HandleIn(tensorflow::FunctionLibraryRuntime* library,
                                                                      Recursion& recursion);

 private:
  // The callee's handle in one function runtime. A session keeps this kernel and uses it under several function
  // runtimes, one for each set of fetches.
  struct Target {
    tensorflow::FunctionLibraryRuntime* library;
    tensorflow::FunctionLibraryRuntime::Handle handle;
    Target* next;
  };

  absl::Status Instantiate(tensorflow::FunctionLibraryRuntime* library,
                           tensorflow::FunctionLibraryRuntime::Handle* handle) const;
  absl::Status CheckDefinition(const tensorflow::FunctionLibraryRuntime& library) const;

  tensorflow::NameAttrList function_;
  // Null if all calls are dynamic.
  std::unique_ptr<StaticCalls> static_calls_;
  // The types of the inputs that are passed on.
  tensorflow::DataTypeVector arguments_;
  const tensorflow::Tensor no_record_{tensorflow::DT_VARIANT, tensorflow::TensorShape({})};
  // A text that names the callee with its attributes.
  std::string key_;
  int64_t max_depth_ = kDefaultDynamicMaxDepth;
  std::mutex mu_;
  // A list that grows under mu_, and that every call reads without it.
  std::atomic<Target*> targets_{nullptr};
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_INVOKE_OP_H_
