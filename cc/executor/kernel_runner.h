// The seam between the executor and the kernels: TensorFlow's in production, fakes in tests.
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

// One invocation of a node in one frame. `inputs` stay the caller's to release; the runner may move
// a tensor out of them (leaving them empty) to let the kernel reuse its buffer. `outputs` come in
// empty and are the caller's once set; one left empty is dead.
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

  // Shared: cheap, and cheaper still for several calls of the node at once. Moderate: worth a thread of its own in the
  // main graph, as in stock execution. Expensive: in a body, too.
  enum class Cost { kCheap, kShared, kModerate, kExpensive, kAsynchronous };
  virtual Cost CostOf(const KernelNode& node) const = 0;

  // For nodes of Cost::kShared: what their calls must have in common to run together, and how much of kFullWave a call
  // with these inputs is. A call without an operand has to run by itself.
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

  // Runs nodes of Cost::kAsynchronous, and others on a thread of their own. `call` and what it points to outlive
  // `done`.
  virtual void RunAsync(const KernelNode& node, KernelCall* call, std::function<void(absl::Status)> done) = 0;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_KERNEL_RUNNER_H_
