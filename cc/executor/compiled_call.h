// Describes a call of compiled code that is under way, and what two workers share of one that was split off.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_COMPILED_CALL_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_COMPILED_CALL_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "cc/base/ids.h"
#include "cc/bytecode/interpreter.h"
#include "cc/executor/frame.h"
#include "cc/executor/worker_context.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

class Inbox;
struct CompiledCall;

// The arguments of a call that a frame has made. Calls that are split off below it read the same tensors.
struct CompiledArguments {
  CompiledArguments() = default;
  ~CompiledArguments() { Clear(); }
  CompiledArguments(const CompiledArguments&) = delete;
  CompiledArguments& operator=(const CompiledArguments&) = delete;

  void Clear() {
    for (Value& value : values) value.Release();
    values.clear();
    arrays.clear();
  }

  std::vector<Value> values;
  // For each value that is a tensor, where its elements lie.
  std::deque<Array> arrays;
};

// Which frame has made a call, at which operator, and of which function.
struct CallOrigin {
  Frame* caller = nullptr;
  OpId op;
  const CompiledFunction* function = nullptr;
};

// A call that one worker, its owner, has split off for another one, its runner. For example, while the owner computes
// fib(n - 1), the runner computes fib(n - 2) of the same frame. The fork goes to the runner in a message and comes back
// in one, so that only one of both touches `results` and what follows at a time.
struct Fork {
  // The owner sets these before it posts the fork.
  Inbox* owner = nullptr;
  CallOrigin origin;
  std::shared_ptr<CompiledArguments> arguments;
  ForkedCall call;
  // The fork that the owner itself was computing for another worker; nullptr if it was computing a frame's call.
  std::shared_ptr<const Fork> part_of;

  // Whoever begins to make the call sets this: the runner, or the owner if it needs the result before the runner has
  // begun.
  std::atomic<bool> is_taken{false};
  // The owner clears this when nobody needs the results any more, and the runner looks between two pieces of work.
  // Relaxed, because it only saves work.
  std::atomic<bool> is_wanted{true};

  // The runner sets these before it posts the fork back. There are no results if the call is unfit, or was stopped
  // because nobody needs them.
  std::vector<uint64_t> results;
  bool has_results = true;
  // How many calls the runner has made for it.
  int64_t calls = 0;

  // Only the owner looks at these: the call that the fork is a part of, nullptr once that has ended; and whether the
  // fork has come back.
  CompiledCall* split_from = nullptr;
  bool is_done = false;
};

// A call that runs on this worker: one that a frame has made, or a fork of another worker, with all calls below it.
struct CompiledCall {
  explicit CompiledCall(const WorkerContext& context)
      : interpreter(*context.program.code, context.program.options.max_depth, &context.run->frame_bytes,
                    &context.run->max_frame_bytes),
        arguments(std::make_shared<CompiledArguments>()) {}

  // Makes this object ready for another call. What was split off from the old one is no longer wanted.
  void Reset() {
    for (const std::shared_ptr<Fork>& part : forks) {
      part->split_from = nullptr;
      part->is_wanted.store(false, std::memory_order_relaxed);
    }
    forks.clear();
    fork = nullptr;
    ends_early = false;
    if (shares_arguments) arguments = std::make_shared<CompiledArguments>();
    shares_arguments = false;
    arguments->Clear();
    registers.clear();
    interpreter.Trim();
  }

  Interpreter interpreter;
  CallOrigin origin;
  std::shared_ptr<CompiledArguments> arguments;
  // The fork that is computed here for another worker; nullptr if a frame has made the call.
  std::shared_ptr<Fork> fork;
  // What was split off and not joined yet. The last one is joined first.
  std::vector<std::shared_ptr<Fork>> forks;
  // Forks read `arguments`, too.
  bool shares_arguments = false;
  // The call ends without results when all of `forks` have come back.
  bool ends_early = false;
  std::vector<uint64_t> registers;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_COMPILED_CALL_H_
