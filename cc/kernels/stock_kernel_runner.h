// Runs nodes by TensorFlow's own kernels, or by native ones where these serve.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_KERNELS_STOCK_KERNEL_RUNNER_H_
#define TENSORFLOW_RECURSION_CC_KERNELS_STOCK_KERNEL_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
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
// Stateful kernels live in the device's OpSegment under the session's handle and the node's name, as they do in stock
// execution. So a random operator or a queue keeps its state whichever fetch runs it. Without a session, as in a
// function, they live as long as this object.
class KernelTable {
 public:
  // What is known of one node's kernel.
  struct Entry {
    tensorflow::OpKernel* kernel = nullptr;
    // The same kernel, if it is asynchronous.
    tensorflow::AsyncOpKernel* async = nullptr;
    // A native kernel that is tried first, if there is one.
    NativeKernel native;
    bool may_be_expensive = false;
    // The kernel takes references to variables without a value, as an assignment does.
    bool takes_uninitialized = false;
    // The kernel takes resources that may be on other CPUs of the process.
    bool looks_up_devices = false;
    // The host can read the memory of all outputs.
    bool is_on_host = true;
    std::vector<tensorflow::AllocatorAttributes> output_attributes;
    std::vector<tensorflow::AllocatorAttributes> input_attributes;
    // Whether the host can read output `index`.
    bool IsReadable(int index) const { return is_on_host || output_attributes[index].on_host(); }
    // A moving average of run times that were measured; kUnmeasured at first. Workers of all runs write it. Relaxed,
    // because a measurement may well be lost.
    mutable std::atomic<int64_t> nanoseconds{kUnmeasured};
    static constexpr int64_t kUnmeasured = -1;
    void NoteTime(int64_t measured) const;
    // Counts a run of the native kernel, which is not measured, as one of no time. The stock kernel may have been slow
    // once, as when the first lookup of rows copies the variable; the node must not count as expensive ever after.
    void NoteNativeRun() const;
  };

  // Makes a kernel for each node of the program, on `library`'s device. An error names the node whose kernel could not
  // be made. `others` is another table for the same graph, or nullptr: a kernel that this table owns is then shared, so
  // that, for example, a random operator goes on with the same numbers in both.
  absl::Status Build(const Program& program, tensorflow::FunctionLibraryRuntime* library,
                     const std::string& session_handle, const KernelTable* others = nullptr);

  const Entry& entry(const KernelNode& node) const { return entries_[node.id]; }
  // The device that launches the kernels; nullptr if they need none, on a CPU.
  tensorflow::Device* launcher() const { return launcher_; }
  // Returns another seed for every run, so that runs do not all measure the same kernels of a program.
  uint32_t NextSeed() const { return next_seed_.fetch_add(0x9e3779b9, std::memory_order_relaxed); }

 private:
  absl::Status FindOrCreate(const KernelNode& node, tensorflow::FunctionLibraryRuntime* library,
                            const std::string& session_handle, const KernelTable* others,
                            tensorflow::OpKernel** kernel);
  void BindNativeKernels(const Program& program);

  std::deque<Entry> entries_;
  // Atomic, because runs of any thread take one.
  mutable std::atomic<uint32_t> next_seed_{1};
  tensorflow::Device* launcher_ = nullptr;
  std::map<const tensorflow::Node*, std::shared_ptr<tensorflow::OpKernel>> owned_;
};

// Runs the kernels in one run, in the environment of the step that `context` belongs to. `cancellation` cancels them.
// Both must outlive it.
class StockKernelRunner : public KernelRunner {
 public:
  StockKernelRunner(const KernelTable* table, tensorflow::OpKernelContext* context,
                    tensorflow::CancellationManager* cancellation, int max_workers);

  Cost CostOf(const KernelNode& node) const override;
  Share ShareOf(const KernelNode& node, const Value* inputs) const override;
  bool RunTogether(const KernelNode& node, absl::Span<KernelCall> calls) override;
  absl::Status Run(const KernelNode& node, absl::Span<KernelCall> calls) override;
  void RunAsync(const KernelNode& node, KernelCall* call, std::function<void(absl::Status)> done) override;

  // Whether the step is traced, so that it has to show every operator.
  bool is_traced() const { return stats_collector_ != nullptr; }

 private:
  // What a kernel reads while it runs. Each worker has one, which it uses again and again, and so has each call in
  // flight.
  struct Scratch {
    Scratch(const tensorflow::OpKernelContext::Params& shared, tensorflow::CancellationManager* cancellation);

    tensorflow::OpKernelContext::Params params;
    std::vector<tensorflow::TensorValue> inputs;
    // Tensors made for inputs that are none.
    std::vector<tensorflow::Tensor> tensors;
    // Some input is a reference, or a number that was read from one.
    bool reads_variables = false;
    uint32_t random = 0;

    // True once in kSampleInterval calls on average, and not for the same kernels in every run.
    bool IsSampled() {
      random = random * 1664525 + 1013904223;  // from "Numerical Recipes"; the upper bits are the good ones
      return (random >> 16) % kSampleInterval == 0;
    }
    // Only one run in so many is measured: to read the clock twice takes a tenth of the time of a small kernel.
    static constexpr uint32_t kSampleInterval = 16;
  };
  struct InFlight;

  // Runs the native kernel, if there is one. Returns whether that has done the work.
  bool RunNative(const KernelNode& node, const KernelTable::Entry& entry, KernelCall* call) const;

  absl::Status RunOne(const KernelNode& node, const KernelTable::Entry& entry, KernelCall* call, Scratch* scratch);
  // Takes what a kernel needs that runs beside the workers. The caller has to give it back.
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
  // Those of the device, among which its kernels divide what they do.
  tensorflow::thread::ThreadPool* const threads_;
  // nullptr unless the step is traced.
  tensorflow::StepStatsCollector* const stats_collector_;
  // A profiler or a trace shows every operator, so all run by their stock kernels.
  const bool shows_operators_;
  // By worker.
  std::deque<Scratch> scratch_;
  // Needed because kernels beside the workers run on any thread.
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> spare_scratch_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_KERNELS_STOCK_KERNEL_RUNNER_H_
