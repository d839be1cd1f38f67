// The static programs that calls outside of a session's graph make for themselves.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_STATIC_CALLS_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_STATIC_CALLS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "cc/base/options.h"
#include "cc/kernels/static_program.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow_recursion {

// Those of one Invoke's kernel, or that of a whole function's graph. Calls of one function in one function runtime
// share a program, whichever node makes them: a function runtime is that of one tf.function, or one iterator of a
// dataset, and what a body keeps (the seeds of random operators, for example) lives as long.
//
// Thread-safe. Must not outlive the function runtimes that it was asked for.
class StaticCalls {
 public:
  // `call` is the kernel's node, on `device`; InvalidArgument if its options are none.
  static absl::StatusOr<std::unique_ptr<StaticCalls>> Make(const tensorflow::NodeDef& call, const std::string& device);
  // All calls of `partition`, with what is between them. `name` is unique in the process.
  static absl::StatusOr<std::unique_ptr<StaticCalls>> MakeWhole(tensorflow::GraphDef partition, const std::string& name,
                                                                DeadResults dead_results);
  ~StaticCalls();

  // What is made static, as it is before: the whole graph, or one of the call.
  const tensorflow::GraphDef& graph() const;

  // The program that runs the call in `library`, made if there is none. nullptr if the call is to run dynamically:
  // static execution is off, or nothing can be made static, of which the user has been told. An error if the user wants
  // that to be one. A whole graph for which there is nullptr is to run as it is; the kernels of its calls decide.
  absl::StatusOr<const RunnableProgram*> Find(tensorflow::FunctionLibraryRuntime* library);

 private:
  // What is shared: a program, or why there is none.
  class Shared;
  struct Source;
  struct Target;

  static absl::StatusOr<std::unique_ptr<StaticCalls>> Make(Source source);
  explicit StaticCalls(Source source);

  absl::StatusOr<const Target*> MakeTarget(tensorflow::FunctionLibraryRuntime* library);
  std::string Key(tensorflow::FunctionLibraryRuntime* library, const Options& options) const;

  const std::unique_ptr<const Source> source_;
  std::mutex mu_;
  std::atomic<Target*> targets_{nullptr};  // grows under mu_, is read without it by every call
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_STATIC_CALLS_H_
