// Makes the static programs of calls that are outside of a session's graph.
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

// Keeps the static programs of one Invoke's kernel, or of a whole function's graph. All calls of one function in one
// function runtime share a program, whichever node makes them. Each tf.function, and each iterator of a dataset, has a
// function runtime of its own, and the state of a body (of random operators, for example) lives as long as that.
//
// Thread-safe. Must not outlive the function runtimes that it was asked for.
class StaticCalls {
 public:
  // `call` is the kernel's node, on `device`. InvalidArgument if its options are wrong.
  static absl::StatusOr<std::unique_ptr<StaticCalls>> Make(const tensorflow::NodeDef& call, const std::string& device);
  // For a whole graph, `partition`: all calls in it, with what is between them. `name` must be unique in the process.
  static absl::StatusOr<std::unique_ptr<StaticCalls>> MakeWhole(tensorflow::GraphDef partition, const std::string& name,
                                                                DeadResults dead_results);
  ~StaticCalls();

  // What is made static, as it was before: the whole graph, or a graph of the call alone.
  const tensorflow::GraphDef& graph() const;

  // Returns the program that runs the call in `library`, and makes it if there is none. Returns nullptr if the call has
  // to run dynamically, because static execution is off, or because the call cannot be made static. In the second case
  // the user has been told, or it is an error if the user wants that. If it returns nullptr for a whole graph, the
  // graph has to run as it is, and the kernels of its calls decide each for itself.
  absl::StatusOr<const RunnableProgram*> Find(tensorflow::FunctionLibraryRuntime* library);

 private:
  // What several objects share: a program, or why there is none.
  class Shared;
  struct Source;
  struct Target;

  static absl::StatusOr<std::unique_ptr<StaticCalls>> Make(Source source);
  explicit StaticCalls(Source source);

  absl::StatusOr<const Target*> MakeTarget(tensorflow::FunctionLibraryRuntime* library);
  std::string Key(tensorflow::FunctionLibraryRuntime* library, const Options& options) const;

  const std::unique_ptr<const Source> source_;
  std::mutex mu_;
  // A list that grows under mu_, and that every call reads without it.
  std::atomic<Target*> targets_{nullptr};
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_STATIC_CALLS_H_
