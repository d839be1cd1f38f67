// Runs nodes by TensorFlow's own kernels, or by native ones where these serve.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_STOCK_KERNEL_RUNNER_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_STOCK_KERNEL_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "cc/executor/kernel_runner.h"
#include "cc/native/native_kernel.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/step_stats_collector.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace tensorflow_recursion {

// The kernels of one program. Built once, shared by concurrent runs.
//
// Stateful kernels live in the device's OpSegment under the session's handle and the node's name, as
// they do in stock execution: a random op or a queue keeps its state whichever fetch runs it. Without a
// session, in a function for instance, they live as long as this object.
class KernelTable {
 public:
  struct Entry {
    tensorflow::OpKernel* kernel = nullptr;
    tensorflow::AsyncOpKernel* async = nullptr;  // the same kernel, if it is asynchronous
    NativeKernel native;                         // tried first
    bool may_be_expensive = false;
    bool takes_uninitialized = false;  // of references: an assignment needs no value before it
    bool looks_up_devices = false;     // it takes resources that may be on other processors of the process
    bool is_on_host = true;            // all its outputs are in memory that the host can read
    std::vector<tensorflow::AllocatorAttributes> output_attributes;
    std::vector<tensorflow::AllocatorAttributes> input_attributes;
    // Whether the host can read output `index`.
    bool IsReadable(int index) const { return is_on_host || output_attributes[index].on_host(); }
    // Moving average of sampled run times; kUnmeasured at first. Relaxed: workers of all runs write it, a lost sample
    // is fine.
    mutable std::atomic<int64_t> nanoseconds{kUnmeasured};
    static constexpr int64_t kUnmeasured = -1;
    void NoteTime(int64_t measured) const;
  };

  // Makes the kernels on `library`'s device. The error names the node.
  absl::Status Build(const Program& program, tensorflow::FunctionLibraryRuntime* library,
                     const std::string& session_handle);

  const Entry& entry(const KernelNode& node) const { return entries_[node.id]; }
  // The device that launches the kernels; nullptr if they need none, on a CPU.
  tensorflow::Device* launcher() const { return launcher_; }
  // Another one for every run, so that no two measure the same kernels of a program.
  uint32_t NextSeed() const { return next_seed_.fetch_add(0x9e3779b9, std::memory_order_relaxed); }

 private:
  absl::Status FindOrCreate(const KernelNode& node, tensorflow::FunctionLibraryRuntime* library,
                            const std::string& session_handle, tensorflow::OpKernel** kernel);
  void BindNativeKernels(const Program& program);

  std::deque<Entry> entries_;
  mutable std::atomic<uint32_t> next_seed_{1};  // runs of any thread take one
  tensorflow::Device* launcher_ = nullptr;
  std::vector<std::unique_ptr<tensorflow::OpKernel>> owned_;
};

// One run: the kernels, in the environment of the step that `context` belongs to, cancelled by `cancellation`. Both
// must outlive it.
class TfKernelRunner : public KernelRunner {
 public:
  TfKernelRunner(const KernelTable* table, tensorflow::OpKernelContext* context,
                 tensorflow::CancellationManager* cancellation, int max_workers);

  Cost CostOf(const KernelNode& node) const override;
  Share ShareOf(const KernelNode& node, const Value* inputs) const override;
  bool RunTogether(const KernelNode& node, absl::Span<KernelCall> calls) override;
  absl::Status Run(const KernelNode& node, absl::Span<KernelCall> calls) override;
  void RunAsync(const KernelNode& node, KernelCall* call, std::function<void(absl::Status)> done) override;

  // Whether the step is traced, so that every operator is to be seen.
  bool is_traced() const { return stats_collector_ != nullptr; }

 private:
  // What a kernel reads while it runs. One per worker, reused; one per call in flight.
  struct Scratch {
    Scratch(const tensorflow::OpKernelContext::Params& shared, tensorflow::CancellationManager* cancellation);

    tensorflow::OpKernelContext::Params params;
    std::vector<tensorflow::TensorValue> inputs;
    std::vector<tensorflow::Tensor> tensors;  // boxes of inputs that came without one
    bool reads_variables = false;             // some input is a reference, or a number read of one
    uint32_t random = 0;

    // True once in kSampleInterval calls on average, and not for the same kernels in every run.
    bool IsSampled() {
      random = random * 1664525 + 1013904223;  // of "Numerical Recipes"; its upper bits are the good ones
      return (random >> 16) % kSampleInterval == 0;
    }
    // One run in so many is timed: reading the clock twice costs as much as a small kernel's tenth.
    static constexpr uint32_t kSampleInterval = 16;
  };
  struct InFlight;

  // Whether a native kernel has done it.
  bool RunNative(const KernelNode& node, const KernelTable::Entry& entry, KernelCall* call) const;

  absl::Status RunOne(const KernelNode& node, const KernelTable::Entry& entry, KernelCall* call, Scratch* scratch);
  // What a kernel needs that runs beside the workers; it is to be given back.
  std::unique_ptr<Scratch> TakeSpareScratch();
  void GiveBack(std::unique_ptr<Scratch> scratch);
  // FailedPrecondition if the kernel reads a reference to a variable that was never assigned.
  absl::Status Prepare(const KernelNode& node, const KernelTable::Entry& entry, const KernelCall& call,
                       Scratch* scratch);
  void UseDeviceOfHandle(const KernelNode& node, Scratch* scratch) const;
  absl::Status CheckInitialized(const KernelNode& node, const KernelTable::Entry& entry, const KernelCall& call,
                                const Scratch& scratch) const;
  static void TakeOutputs(const KernelNode& node, const KernelTable::Entry& entry, const Scratch& scratch,
                          tensorflow::OpKernelContext* context, KernelCall* call);
  tensorflow::NodeExecStatsInterface* StartStats(const KernelNode& node);
  void EndStats(tensorflow::NodeExecStatsInterface* stats, tensorflow::OpKernelContext* context);

  const KernelTable* const table_;
  tensorflow::OpKernelContext* const context_;
  tensorflow::CancellationManager* const cancellation_;
  const NativeContext native_context_;
  tensorflow::StepStatsCollector* const stats_collector_;  // of a step that is traced, else nullptr
  const bool shows_operators_;  // to the profiler or in a trace: every operator runs by its stock kernel
  std::deque<Scratch> scratch_;
  std::mutex mutex_;  // kernels beside the workers run on any thread
  std::vector<std::unique_ptr<Scratch>> spare_scratch_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_STOCK_KERNEL_RUNNER_H_
