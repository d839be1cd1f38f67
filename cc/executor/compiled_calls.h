// Calls of functions that are compiled: they run here instead of in frames.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_COMPILED_CALLS_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_COMPILED_CALLS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "cc/base/ids.h"
#include "cc/bytecode/interpreter.h"
#include "cc/executor/frame.h"
#include "cc/executor/frame_store.h"
#include "cc/executor/token_router.h"
#include "cc/executor/worker_context.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// A call out of a frame is one piece of compiled code with all calls below it. It runs as long as the worker may go on
// without looking up, and goes on after that: a worker calls Resume() until nothing is under way.
//
// Not thread-safe: it is the worker's own.
class CompiledCalls {
 public:
  CompiledCalls(WorkerContext* context, FrameStore* frames, TokenRouter* router)
      : context_(context), frames_(frames), router_(router) {}
  ~CompiledCalls() { Clear(); }

  // A call that must run in frames after all.
  struct Returned {
    Frame* caller;
    OpId op;
    std::vector<Value> arguments;
  };

  // Whether the call can run here: its function is compiled, and the arguments are numbers and tensors where the code
  // takes them for such.
  bool Takes(const CallSite& site, const Value* arguments, uint32_t num_arguments) const;

  // Begins a call that it takes, whose arguments are moved out of `arguments`, and goes on with it. The call's count in
  // the caller's `live` is given back when it ends.
  std::optional<Returned> Start(Frame* caller, OpId op, Value* arguments, uint32_t num_arguments);

  bool has_any() const { return !running_.empty(); }
  // Goes on with the newest.
  std::optional<Returned> Resume();

  // After an error: forgets all.
  void Clear();

 private:
  struct Call {
    explicit Call(const WorkerContext& context)
        : interpreter(*context.program.code, context.program.options.max_depth, &context.run->frame_bytes,
                      context.run->max_frame_bytes) {}

    Interpreter interpreter;
    Frame* caller = nullptr;
    OpId op;
    const CompiledFunction* function = nullptr;
    std::vector<Value> arguments;
    std::deque<Array> arrays;  // of the arguments that are tensors
    std::vector<uint64_t> registers;
  };

  std::unique_ptr<Call> NewCall();
  void Retire(Call* call);
  void ReadArguments(Call* call);
  void Finish(Call* call);
  bool RunKernel(Call* call);
  std::optional<Returned> GiveBack(Call* call);
  void FailTooDeep(Call* call, bool is_too_deep);
  const CallSite& SiteOf(const Call& call) const;

  WorkerContext* const context_;
  FrameStore* const frames_;
  TokenRouter* const router_;
  std::vector<std::unique_ptr<Call>> running_;  // newest last
  std::vector<std::unique_ptr<Call>> idle_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_COMPILED_CALLS_H_
