// Runs a static graph, by its program and the kernels of its operators.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_STATIC_PROGRAM_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_STATIC_PROGRAM_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cc/base/options.h"
#include "cc/kernels/stock_kernel_runner.h"
#include "cc/program/program.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// What a dead result of a graph becomes: an error, as in a session, or an empty tensor, as TensorFlow gives it to the
// caller of a function.
enum class DeadResults { kAreErrors, kAreEmpty };

// The empty tensor that a dead result becomes. It has the type of the result, so that a gradient may take it, while
// TensorFlow's is always a float.
tensorflow::Tensor DeadResult(tensorflow::DataType type);

// A program that the kernel of a call may run in place of the call.
class RunnableProgram {
 public:
  virtual ~RunnableProgram() = default;

  // Runs with the first inputs of the kernel that `context` is for, and sets its first outputs, or its status; then
  // calls `done`.
  virtual void Run(tensorflow::OpKernelContext* context, tensorflow::AsyncOpKernel::DoneCallback done) const = 0;
};

// Made once, then constant: any number of runs may share it at the same time. Must not outlive the function runtime
// that it was made for.
class StaticProgram : public RunnableProgram {
 public:
  // `graph` is a partition, or a whole graph on one device, between `_Arg` and `_Retval` nodes. Stateful kernels are
  // those of the session with that handle, or the program's own if it is empty. Without a session, variables are read
  // only once for a recursion where nobody can tell.
  static absl::Status Make(std::unique_ptr<tensorflow::Graph> graph, tensorflow::FunctionLibraryRuntime* library,
                           const std::string& session_handle, std::unique_ptr<StaticProgram>* program);

  // From now on runs count their calls as outermost ones, see cc/base/static_settings.h.
  void CountCalls() { counts_calls_ = true; }
  void SetDeadResults(DeadResults dead_results) { dead_results_ = dead_results; }

  const tensorflow::DataTypeVector& argument_types() const { return tables_.program->argument_types; }
  const tensorflow::DataTypeVector& retval_types() const { return tables_.program->retval_types; }

  void Run(tensorflow::OpKernelContext* context, tensorflow::AsyncOpKernel::DoneCallback done) const override;

 private:
  // The tables that a run goes by, with their kernels.
  struct Tables {
    std::unique_ptr<Program> program;
    KernelTable kernels;
  };

  StaticProgram(std::unique_ptr<tensorflow::Graph> graph, tensorflow::FunctionLibraryRuntime* library,
                const std::string& session_handle);

  absl::Status BuildTables(VariableReads variable_reads, Tables* tables) const;
  // Tables that have every frame read its variables. Made when they are needed for the first time.
  absl::StatusOr<const Tables*> TablesWithoutSharedReads() const;
  // Whether all variables can be read that `tables_` has calls read.
  bool CanShareReads(tensorflow::OpKernelContext* context) const;
  void RunWith(const Tables& tables, tensorflow::OpKernelContext* context,
               tensorflow::AsyncOpKernel::DoneCallback done) const;

  // Kept because the tables refer to its nodes.
  const std::unique_ptr<tensorflow::Graph> graph_;
  tensorflow::FunctionLibraryRuntime* const library_;
  const std::string session_handle_;
  const tensorflow::DeviceType device_type_;
  Tables tables_;
  // Needed because runs of several threads may need the others at once.
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const Tables> without_shared_reads_ ABSL_GUARDED_BY(mutex_);
  // The last run that has ended took long, so the next one probably will.
  mutable std::atomic<bool> was_long_{false};
  bool counts_calls_ = false;
  DeadResults dead_results_ = DeadResults::kAreErrors;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_STATIC_PROGRAM_H_
