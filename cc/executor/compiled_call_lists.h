// Lists a worker's calls of compiled code: which run, which wait, and which can be used again.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_COMPILED_CALL_LISTS_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_COMPILED_CALL_LISTS_H_

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "cc/executor/compiled_call.h"

namespace tensorflow_recursion {

// Each call is in one of three lists: it runs, it waits for forks, or it has ended and is kept for the next call,
// because its interpreter has memory. The lists are short: they have an element for each call that a frame has made or
// another worker has split off, and none for the calls below these.
class CompiledCallLists {
 public:
  using Calls = std::vector<std::unique_ptr<CompiledCall>>;

  explicit CompiledCallLists(const WorkerContext* context) : context_(*context) {}

  // Returns a new call, as the newest of those that run.
  CompiledCall* New() {
    if (idle_.empty()) {
      running_.push_back(std::make_unique<CompiledCall>(context_));
    } else {
      running_.push_back(std::move(idle_.back()));
      idle_.pop_back();
    }
    return running_.back().get();
  }

  // Ends a call, which the caller must not look at any more. What was split off from it is no longer wanted.
  void Retire(CompiledCall* call) {
    call->Reset();
    Move(call, IsRunning(call) ? &running_ : &waiting_, &idle_);
  }

  // Lets a call that runs wait for forks; does nothing if it waits already.
  void Suspend(CompiledCall* call) {
    if (IsRunning(call)) Move(call, &running_, &waiting_);
  }
  // Lets a call that waits run, as the newest; does nothing if it runs already.
  void WakeUp(CompiledCall* call) {
    if (!IsRunning(call)) Move(call, &waiting_, &running_);
  }

  void RetireAll() {
    while (!running_.empty()) Retire(running_.back().get());
    while (!waiting_.empty()) Retire(waiting_.back().get());
  }

  // The newest comes last.
  const Calls& running() const { return running_; }
  bool has_waiting() const { return !waiting_.empty(); }

 private:
  static Calls::iterator Find(Calls& calls, const CompiledCall* call) {
    return std::find_if(calls.begin(), calls.end(), [&](const auto& other) { return other.get() == call; });
  }

  bool IsRunning(const CompiledCall* call) { return Find(running_, call) != running_.end(); }

  static void Move(const CompiledCall* call, Calls* from, Calls* to) {
    const auto position = Find(*from, call);
    to->push_back(std::move(*position));
    from->erase(position);
  }

  const WorkerContext& context_;
  Calls running_;
  Calls waiting_;
  Calls idle_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_COMPILED_CALL_LISTS_H_
