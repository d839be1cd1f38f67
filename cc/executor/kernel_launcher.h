// Runs kernels: on the worker's thread, on other threads, or asynchronously.
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

// Most kernels run on the worker's own thread. An asynchronous one is started, and calls back when it is done. One that
// is known to be expensive goes to another thread, if the worker has something else to do meanwhile and a thread is
// free. Both are then *in flight*: each is an activity of the run and counts in the frame's `live`, until a message
// tells the frame's owner that it has ended.
//
// In the main graph, expensive kernels spread over the threads of the pool. Each is *held* at first, while the worker
// does what is cheap. If that makes a second one ready, one of them goes to another thread. In the end, if no other
// kernel is in flight, the held one runs here. Else the worker goes to sleep, and its thread runs the held kernel
// beside it: the first thread to be done goes on as the worker. For example, of two chains of products, two threads
// compute one each, and take turns as the worker, which only hands products out. An operator that waits for such a
// kernel's only output, and for nothing else, goes along: the thread runs the whole chain before it looks for the
// worker.
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

  // Runs the fullest wave, when there is nothing else to do. Returns whether there was one.
  bool RunFullestWave();

  // To be called with the message that a kernel of one of the worker's frames has ended.
  void Land(Message* message);

  // Sends the kernel that is held, if there is one, to another thread, because the worker has something else to do.
  void SendHeld();
  // Runs the kernel that is held, if there is one and no other is in flight. Returns whether it has run.
  bool RunHeld();
  bool has_held() const { return held_.has_value(); }
  // Takes the kernel that is held, if there is one. The caller runs it beside the worker, which goes to sleep, or holds
  // it again.
  std::optional<KernelFlight> TakeHeld();
  void Hold(const KernelFlight& flight) { held_ = flight; }

  Flights& flights() { return flights_; }

 private:
  // How many kernels are one flight at most.
  static constexpr int kLongestFlight = 32;

  bool DeliverKept(Frame* frame, const Op& op, Value* inputs, const KernelNode& node);
  void RunHere(Frame* frame, const Op& op, Value* inputs, const KernelNode& node);
  void MakeRoomForOutputs();
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
  void Deliver(Frame* frame, const Op& op, const KernelNode& node, Value* outputs);

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
