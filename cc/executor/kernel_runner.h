// Runs the kernels for the executor: TensorFlow's in production, fakes in tests.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_KERNEL_RUNNER_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_KERNEL_RUNNER_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "cc/executor/frame_tag.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// One invocation of a node in one frame. The caller releases the inputs afterwards. The runner may move a tensor out of
// them, to let the kernel reuse its buffer, and leaves the input empty then. The outputs are empty at first. The runner
// sets them, and the caller takes them over. An output that stays empty is dead.
struct KernelCall {
  Value* inputs = nullptr;
  Value* outputs = nullptr;
  // What the frame is called in rendezvous keys.
  FrameTag tag;
  // Which of the run's workers makes the call.
  int worker = 0;
  // The call is that of a send, which tells the other device that its input is dead.
  bool is_dead = false;
};

// Thread-safe: several workers of a run call it at once.
class KernelRunner {
 public:
  virtual ~KernelRunner() = default;

  // How long a kernel takes, which decides where it runs.
  enum class Cost {
    // It runs on the worker's thread.
    kCheap,
    // It is cheap, and even cheaper when several calls of the node run at once.
    kShared,
    // It is worth a thread of its own in the main graph, as in stock execution, but not in a body.
    kModerate,
    // It is worth a thread of its own in a body, too.
    kExpensive,
    // It calls back when it is done.
    kAsynchronous,
  };
  virtual Cost CostOf(const KernelNode& node) const = 0;

  // For nodes of Cost::kShared: the operand that calls must have in common to run together, such as a weight, and how
  // many rows a call with these inputs adds to a wave, which is full at kFullWave. A call without an operand has to run
  // by itself.
  struct Share {
    const void* operand = nullptr;
    int rows = 0;
  };
  static constexpr int kFullWave = 8;
  virtual Share ShareOf(const KernelNode& node, const Value* inputs) const = 0;

  // Runs the node for calls that share an operand, all at once. Returns false if they have to run one by one, and has
  // then touched nothing.
  virtual bool RunTogether(const KernelNode& node, absl::Span<KernelCall> calls) = 0;

  // Runs the node once for every call, in order; the first failure ends it.
  virtual absl::Status Run(const KernelNode& node, absl::Span<KernelCall> calls) = 0;

  // Runs the node and calls `done`, at once or later on another thread. `call` and what it points to must stay valid
  // until then. For nodes of Cost::kAsynchronous, and for others that run on a thread of their own.
  virtual void RunAsync(const KernelNode& node, KernelCall* call, std::function<void(absl::Status)> done) = 0;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_KERNEL_RUNNER_H_
