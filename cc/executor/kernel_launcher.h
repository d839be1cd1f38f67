// Has kernels run: here, on other threads, or by themselves.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_KERNEL_LAUNCHER_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_KERNEL_LAUNCHER_H_

#include <memory>
#include <optional>
#include <vector>

#include "cc/base/ids.h"
#include "cc/executor/flights.h"
#include "cc/executor/frame.h"
#include "cc/executor/frame_store.h"
#include "cc/executor/inbox.h"
#include "cc/executor/kernel_flight.h"
#include "cc/executor/kernel_runner.h"
#include "cc/executor/operator_inputs.h"
#include "cc/executor/ready_queue.h"
#include "cc/executor/token_router.h"
#include "cc/executor/waves.h"
#include "cc/executor/worker_context.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// A kernel runs on the worker's own thread, as long as nothing speaks against it. An asynchronous one is started and
// says itself when it is done; one that is known to be expensive goes to another thread if the worker has something
// else to do meanwhile and a thread is to be had. Both are then *in flight*: an activity of the run and a count of
// `live` in the frame, which ends by a message to the frame's owner.
//
// In the main graph, expensive kernels spread over the threads of the pool. Each is *held* at first: the worker does
// what is cheap before. If that makes a second one ready, one of them goes to another thread. If nothing else is under
// way, the held one runs here; else the worker goes to sleep and its thread runs the held one beside it, so that
// whoever ends first can work on. An example: of two chains of products, a thread each computes one, and both take
// turns as the worker, which only hands products out. What waits for such a kernel's only output, and for nothing else,
// goes along: the thread runs the whole chain before it looks for the worker.
//
// In bodies, a kernel that takes less time for several frames at once waits for others in a *wave*
// (cc/executor/waves.h).
//
// Not thread-safe: it is the worker's own.
class KernelLauncher {
 public:
  KernelLauncher(WorkerContext* context, const ReadyQueue* queue, OperatorInputs* inputs, Waves* waves,
                 FrameStore* frames, TokenRouter* router)
      : context_(context), queue_(queue), inputs_(inputs), waves_(waves), frames_(frames), router_(router) {}

  // Runs or starts the kernel of operator `index`, with its inputs side by side.
  void Fire(Frame* frame, OpId index, const Op& op, Value* inputs);

  // There is nothing else to do: runs the fullest wave. Returns whether there is one.
  bool RunFullestWave();

  // A kernel of one of the worker's frames has ended elsewhere.
  void Land(Message* message);

  // The kernel that is held, if there is one: the worker has something else to do, so it goes to another thread; or
  // nothing, and it runs here, unless others are in flight. Returns whether it has run.
  void SendHeld();
  bool RunHeld();
  bool has_held() const { return held_.has_value(); }
  // Takes the kernel that is held, if there is one. It is to run beside the worker, which goes to sleep, or is held
  // again.
  std::optional<KernelFlight> TakeHeld();
  void Hold(const KernelFlight& flight) { held_ = flight; }

  Flights& flights() { return flights_; }

 private:
  // How many kernels fly together at most.
  static constexpr int kLongestFlight = 32;

  void RunHere(Frame* frame, const Op& op, Value* inputs, const KernelNode& node);
  bool Waits(Frame* frame, OpId index, const Op& op, Value* inputs, const KernelNode& node);
  void RunWave(Wave wave);
  bool RunTogether(Wave* wave);
  void FireInMainGraph(Frame* frame, OpId index, const Op& op, Value* inputs, const KernelNode& node);
  std::unique_ptr<KernelInFlight> Board(const Frame& frame, OpId index, Value* inputs, KernelInFlight::Way way);
  KernelFlight Depart(Frame* frame, OpId index, Value* inputs, KernelInFlight::Way way);
  KernelFlight WithChain(const KernelFlight& flight);
  const Edge* OnlyEdge(const Frame& frame, OpId index) const;
  void NoteEnd(const Frame& frame, const KernelInFlight& kernel);
  void DeliverOutputs(Frame* frame, const Op& op, const KernelNode& node, Value* outputs);

  WorkerContext* const context_;
  const ReadyQueue* const queue_;
  OperatorInputs* const inputs_;
  Waves* const waves_;
  FrameStore* const frames_;
  TokenRouter* const router_;
  // Where the kernel that runs here puts its outputs.
  std::vector<Value> outputs_;
  Flights flights_;
  std::optional<KernelFlight> held_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_KERNEL_LAUNCHER_H_
