// Runs calls of functions that are compiled, which need no frames.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_COMPILED_CALLS_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_COMPILED_CALLS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cc/base/ids.h"
#include "cc/executor/compiled_call.h"
#include "cc/executor/compiled_call_lists.h"
#include "cc/executor/fork_pace.h"
#include "cc/executor/frame.h"
#include "cc/executor/frame_store.h"
#include "cc/executor/inbox.h"
#include "cc/executor/token_router.h"
#include "cc/executor/worker_context.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// A call that a frame makes runs here with all calls below it. It runs until the worker has to look up, and goes on
// after that: a worker calls Resume() until nothing is under way.
//
// A worker that looks up and finds another one idle splits a call off for it (SplitOff()). The other worker runs that
// call (StartFork()) and sends its results back (EndFork()). A call that needs the result of a fork before it is there
// waits, and the worker does something else: for example, it runs a fork of the other worker.
//
// Not thread-safe: it is the worker's own.
class CompiledCalls {
 public:
  CompiledCalls(WorkerContext* context, Inbox* inbox, FrameStore* frames, TokenRouter* router)
      : context_(context), inbox_(inbox), frames_(frames), router_(router), calls_(context) {}
  ~CompiledCalls() { Clear(); }

  // A call that must run in frames after all.
  struct Returned {
    Frame* caller;
    OpId op;
    std::vector<Value> arguments;
  };

  // Whether the call can run here: its function is compiled, and each argument is a number or a tensor where the code
  // expects one.
  bool Takes(const CallSite& site, const Value* arguments, uint32_t num_arguments) const;

  // Begins a call that it takes, whose arguments are moved out of `arguments`, and goes on with it. The call's count in
  // the caller's `live` is given back when it ends.
  std::optional<Returned> Start(Frame* caller, OpId op, Value* arguments, uint32_t num_arguments);

  bool has_any() const { return !calls_.running().empty(); }
  // Goes on with the newest call.
  std::optional<Returned> Resume();

  // Whether it is worth the while to look for a call to split off.
  bool MayFork() const { return has_any() && pace_.IsTime(); }
  // Splits a call off the oldest one that can be split. Returns nullptr if there is none.
  std::shared_ptr<Fork> SplitOff();
  // Runs a call for another worker.
  void StartFork(std::shared_ptr<Fork> fork);
  bool waits_for_forks() const { return calls_.has_waiting(); }
  // To be called when a fork has come back that this worker has split off.
  std::optional<Returned> EndFork(Fork* fork);

  // Forgets all calls, after an error.
  void Clear() { calls_.RetireAll(); }

 private:
  void ReadArguments(CompiledCall* call);
  bool Join(CompiledCall* call);
  void Finish(CompiledCall* call);
  void FinishFork(CompiledCall* call);
  absl::StatusOr<bool> RunKernel(CompiledCall* call);
  std::optional<Returned> Fail(CompiledCall* call, const absl::Status& status);
  std::optional<Returned> EndUnfit(CompiledCall* call);
  std::optional<Returned> EndEarly(CompiledCall* call);
  std::optional<Returned> GiveBack(CompiledCall* call);
  absl::Status TooDeep(const CompiledCall& call, bool is_too_deep) const;
  void Spend(CompiledCall* call, int64_t calls);
  const CallSite& SiteOf(const CallOrigin& origin) const;

  WorkerContext* const context_;
  Inbox* const inbox_;
  FrameStore* const frames_;
  TokenRouter* const router_;
  CompiledCallLists calls_;
  ForkPace pace_;
  // How many calls were made that do not make up a piece of the worker's work yet.
  int64_t spent_calls_ = 0;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_COMPILED_CALLS_H_
