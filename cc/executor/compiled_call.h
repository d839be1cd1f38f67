// A call of compiled code that is under way, and what two workers share of one that was split off.
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

// What a call out of a frame was given. Calls split off below it read the same tensors.
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
  std::deque<Array> arrays;  // of the values that are tensors
};

// Who asked for a call, and of what.
struct CallOrigin {
  Frame* caller = nullptr;
  OpId op;
  const CompiledFunction* function = nullptr;
};

// A call that one worker, its owner, has split off for another one, its runner. It goes to the runner in a message and
// comes back in one, so that only one of both touches `results` and what follows at a time.
struct Fork {
  // Set before it is posted.
  Inbox* owner = nullptr;
  CallOrigin origin;
  std::shared_ptr<CompiledArguments> arguments;
  ForkedCall call;
  std::shared_ptr<const Fork> part_of;  // what the owner computes for another worker; nullptr: a call out of a frame

  // Set by who begins to make the call: the runner, or the owner if it needs the result before that one has begun.
  std::atomic<bool> is_taken{false};
  // Set by the owner when nobody needs the results any more; the runner looks between two pieces of work. Relaxed: it
  // saves work, nothing else.
  std::atomic<bool> is_wanted{true};

  // Set by the runner before it posts the fork back.
  std::vector<uint64_t> results;
  int64_t calls = 0;        // that it has made
  bool has_results = true;  // not if the call is unfit, or was stopped because nobody needs it

  // The owner's alone.
  CompiledCall* split_from = nullptr;  // nullptr: that one has ended
  bool is_done = false;
};

struct CompiledCall {
  explicit CompiledCall(const WorkerContext& context)
      : interpreter(*context.program.code, context.program.options.max_depth, &context.run->frame_bytes,
                    &context.run->max_frame_bytes),
        arguments(std::make_shared<CompiledArguments>()) {}

  // Makes it ready for another call. Nobody needs any more what was split off from it.
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
  // What the call computes for another worker; nullptr if it is a call out of a frame.
  std::shared_ptr<Fork> fork;
  // What was split off and not joined yet. The last one is joined first.
  std::vector<std::shared_ptr<Fork>> forks;
  // Some fork has got `arguments`, too.
  bool shares_arguments = false;
  // The call ends without results when all of `forks` have come back.
  bool ends_early = false;
  std::vector<uint64_t> registers;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_COMPILED_CALL_H_
