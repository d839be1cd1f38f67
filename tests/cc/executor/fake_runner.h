// Stands in for TensorFlow's kernels when the executor is tested, and runs programs to their end.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_EXECUTOR_FAKE_RUNNER_H_
#define TENSORFLOW_RECURSION_TESTS_CC_EXECUTOR_FAKE_RUNNER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "cc/executor/kernel_runner.h"
#include "cc/executor/run_program.h"
#include "cc/values/scalar_ops.h"
#include "tests/cc/executor/thread_pool.h"
#include "tests/cc/program/built_programs.h"
#include "tests/cc/values/live_tensors.h"

namespace tensorflow_recursion {

// Runs what was defined for a node's name; arithmetic by the scalar functions; else passes input 0 on.
// Thread-safe once everything is defined.
class FakeRunner : public KernelRunner {
 public:
  using Kernel = std::function<absl::Status(KernelCall*)>;
  using Done = std::function<void(absl::Status)>;
  using AsyncKernel = std::function<void(KernelCall*, Done)>;

  FakeRunner& On(const std::string& node, Kernel kernel, Cost cost = Cost::kCheap) {
    kernels_[node] = {std::move(kernel), nullptr, cost, nullptr};
    return *this;
  }
  FakeRunner& OnAsync(const std::string& node, AsyncKernel kernel) {
    kernels_[node] = {nullptr, std::move(kernel), Cost::kAsynchronous, nullptr};
    return *this;
  }

  // How often the node has run.
  int runs(const std::string& node) const {
    std::lock_guard<std::mutex> lock(mutex_);
    auto position = runs_.find(node);
    return position == runs_.end() ? 0 : position->second;
  }
  // How many workers have run a kernel.
  int workers() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int>(workers_.size());
  }

  Cost CostOf(const KernelNode& node) const override {
    auto position = kernels_.find(node.name);
    return position == kernels_.end() ? Cost::kCheap : position->second.cost;
  }

  // Calls of a node that was defined with Cost::kShared share what input 1 is, with one row each.
  Share ShareOf(const KernelNode& /*node*/, const Value* inputs) const override {
    return {inputs[1].tensor_or_null(), 1};
  }
  // A kernel that gets all calls which run together; without one, calls never do.
  using SharedKernel = std::function<bool(absl::Span<KernelCall>)>;
  FakeRunner& OnTogether(const std::string& node, Kernel kernel, SharedKernel together) {
    kernels_[node] = {std::move(kernel), nullptr, Cost::kShared, std::move(together)};
    return *this;
  }
  bool RunTogether(const KernelNode& node, absl::Span<KernelCall> calls) override {
    return kernels_.at(node.name).together(calls);
  }

  absl::Status Run(const KernelNode& node, absl::Span<KernelCall> calls) override {
    for (KernelCall& call : calls) {
      Count(node, call);
      auto position = kernels_.find(node.name);
      const absl::Status status = position == kernels_.end() ? Default(node, &call) : position->second.kernel(&call);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  void RunAsync(const KernelNode& node, KernelCall* call, Done done) override {
    auto position = kernels_.find(node.name);
    if (position == kernels_.end() || !position->second.async) return done(Run(node, absl::MakeSpan(call, 1)));
    Count(node, *call);
    position->second.async(call, std::move(done));
  }

 private:
  struct Behaviour {
    Kernel kernel;
    AsyncKernel async;
    Cost cost;
    SharedKernel together;
  };

  void Count(const KernelNode& node, const KernelCall& call) {
    std::lock_guard<std::mutex> lock(mutex_);
    ++runs_[node.name];
    ++workers_[call.worker];
  }

  static absl::Status Default(const KernelNode& node, KernelCall* call) {
    const ScalarFunction scalar = FindScalarFunction(node.op, node.inputs, node.outputs);
    if (scalar == nullptr) {
      if (!node.outputs.empty()) call->outputs[0] = call->inputs[0].Take().Escape();
      return absl::OkStatus();
    }
    if (scalar(call->inputs, call->outputs)) return absl::OkStatus();
    return absl::InvalidArgumentError("Integer division by zero in " + node.name);
  }

  std::map<std::string, Behaviour> kernels_;
  mutable std::mutex mutex_;
  std::map<std::string, int> runs_ ABSL_GUARDED_BY(mutex_);
  std::map<int, int> workers_ ABSL_GUARDED_BY(mutex_);
};

// Hands input 0 on, and ends only if two calls run at once.
class Meeting {
 public:
  absl::Status Join(KernelCall* call) {
    const int me = here_++;
    met_[me].Notify();
    met_[1 - me].WaitForNotification();
    call->outputs[0] = call->inputs[0].Take().Escape();
    return absl::OkStatus();
  }

 private:
  absl::Notification met_[2];
  std::atomic<int> here_{0};
};

// A run of `built` by the runner's kernels, with threads of `pool`.
inline RunEnvironment EnvironmentOf(const BuiltProgram& built, FakeRunner* runner, ThreadPool* pool,
                                    uint64_t seed = 0) {
  RunEnvironment environment;
  environment.program = built.program.get();
  environment.runner = runner;
  environment.schedule = [pool](std::function<void()> work) { pool->Schedule(std::move(work)); };
  environment.shuffle_seed = seed;
  return environment;
}

// How a run has ended.
struct Outcome {
  absl::Status status;
  std::vector<Value> retvals;

  Outcome() = default;
  Outcome(Outcome&&) = default;
  Outcome& operator=(Outcome&&) = default;
  ~Outcome() { Release(); }

  void Release() {
    for (Value& value : retvals) value.Release();
  }
  bool IsDead(int index) const { return retvals.at(index).is_empty(); }
  std::vector<int> Numbers() const {
    std::vector<int> numbers;
    numbers.reserve(retvals.size());
    for (const Value& value : retvals) numbers.push_back(value.is_empty() ? kDead : LiveTensors::Number(value));
    return numbers;
  }

  static constexpr int kDead = -999'999;  // among numbers
};

// A run that has been started and can be waited for.
class PendingRun {
 public:
  // `on_error`, if given, is called before the run counts as ended with an error.
  void Start(const RunEnvironment& environment, std::vector<Value> arguments,
             const std::function<void()>& on_error = {}) {
    RunProgram(environment, std::move(arguments),
               [this, ended = ended_, on_error](const absl::Status& status, std::vector<Value> retvals) {
                 outcome_.status = status;
                 outcome_.retvals = std::move(retvals);
                 if (!status.ok() && on_error) on_error();
                 ended->set_value();
               });
  }
  bool has_ended() const { return EndsWithin(absl::ZeroDuration()); }
  bool EndsWithin(absl::Duration patience) const {
    return end_.wait_for(absl::ToChronoNanoseconds(patience)) == std::future_status::ready;
  }
  Outcome Wait() {
    end_.wait();
    return std::move(outcome_);
  }

 private:
  Outcome outcome_;
  std::shared_ptr<std::promise<void>> ended_ = std::make_shared<std::promise<void>>();  // may outlive who waits
  std::future<void> end_ = ended_->get_future();
};

inline Outcome RunToEnd(const RunEnvironment& environment, std::vector<Value> arguments) {
  PendingRun run;
  run.Start(environment, std::move(arguments));
  return run.Wait();
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_EXECUTOR_FAKE_RUNNER_H_
