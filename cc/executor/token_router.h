// Hands what an operator yields to all operators that wait for it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_TOKEN_ROUTER_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_TOKEN_ROUTER_H_

#include <cstdint>
#include <vector>

#include "absl/base/optimization.h"
#include "cc/base/ids.h"
#include "cc/executor/death_teller.h"
#include "cc/executor/frame.h"
#include "cc/executor/frame_store.h"
#include "cc/executor/inbox.h"
#include "cc/executor/incomplete_sites.h"
#include "cc/executor/partial_calls.h"
#include "cc/executor/ready_queue.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// Follows the edges. It puts values into the slots of the operators that read them, and operators and calls that have
// all they wait for into the queue. A value for a frame of another worker becomes a message. Operators that only let a
// value through (gates, merges, results of a frame, exits of a loop) are never queued: the router follows the value
// through them at once, and from frame to frame upwards. It does so in loops, and where a value has several ways to go
// it keeps a list of deferred ones, so the C++ stack does not grow with the depth of the recursion.
//
// Every method takes over the value it is given, and the frame must belong to the worker unless a comment says
// otherwise.
class TokenRouter {
 public:
  TokenRouter(ReadyQueue* queue, FrameStore* frames, PartialCalls* partial_calls, IncompleteSites* incomplete_sites)
      : queue_(queue), frames_(frames), partial_calls_(partial_calls), incomplete_sites_(incomplete_sites) {}

  // Gives the value to all who read the port, and tells those who wait for it by a control edge.
  void DeliverPort(Frame* frame, const Port* port, Value value);

  // Tells those who wait by a control edge for the operator itself, whichever of its ports are live.
  void DeliverDone(Frame* frame, const Op& op) {
    if (op.has_controls) DeliverControls(frame, frame->region->ports[op.port + op.num_ports]);
  }

  // Hands argument `entry` of a function, or a variable of a loop, to the operators that read it.
  void DeliverEntry(Frame* frame, OpId entry, Value value);
  void DeliverArgument(Frame* callee, uint32_t index, Value value) {
    const std::vector<OpId>& entries = callee->region->entries;
    DeliverEntry(callee, index < entries.size() ? entries[index] : OpId(), value);
  }

  // Hands over an argument that came after its frame was opened. The frame may be another worker's.
  void DeliverMissingArgument(Frame* callee, uint32_t index, Value value);

  // Hands over result `index` of the call at `op`. The frame may be another worker's.
  void DeliverResult(Frame* caller, OpId op, uint32_t index, Value value);

  // Queues the operators that wait for nothing but the frame itself.
  void StartFrame(Frame* frame);

  // Tells those that must learn of it that values will never come.
  void Kill(Frame* frame, const DeathList& deaths) { death_teller_.Kill(frame, deaths); }
  // The same for all ports of an operator.
  void KillAll(Frame* frame, const Op& op) { Kill(frame, frame->region->port_deaths[op.port + op.num_ports]); }

  // Whether values wait for their turn. A worker delivers these before it does anything else.
  bool has_deferred() const { return !deferred_ports_.empty() || !deferred_arguments_.empty(); }
  void DeliverDeferred();
  // Releases the values. The frames keep their counts: after an error nobody looks at them.
  void ClearDeferred();

  // Counts an arrival at an operator: a value, a control token, or a death if the operator fires with dead inputs.
  void CountDown(Frame* frame, OpId op) {
    if (--frame->pending()[op] == 0) queue_->Push(frame, op);
  }
  void MarkUnion(Frame* frame, OpId op, uint32_t index);
  void DeliverCallArgument(Frame* frame, const Edge& edge, Value value);

 private:
  // A copy of a value that several operators read, one of which lets it through to `port`. It counts in the frame's
  // `live`.
  struct DeferredPort {
    Frame* frame;
    const Port* port;
    Value value;
  };
  // An argument that came after its frame was opened. It counts in the frame's `missing`. When it is passed down a
  // chain of frames that were all opened without it, each of them defers it for the next.
  struct DeferredArgument {
    Frame* callee;
    uint32_t index;
    Value value;
  };

  void DeliverControl(Frame* frame, const Edge& edge);
  void DeliverControls(Frame* frame, const Port& port);
  void DeliverCopy(Frame* frame, const Edge& edge, Value value);
  void Store(Frame* frame, const Edge& edge, const Value& value) {
    frame->Keep(edge.slot, value);
    CountDown(frame, edge.op);
  }

  // These return the port at which the value goes on, or nullptr if it stays here. They set *frame to the frame in
  // which it goes on.
  const Port* LetThrough(Frame** frame, const Edge& edge, Value* value);
  const Port* LetThroughGate(Frame* frame, const Edge& edge, const Value& value);
  const Port* LetThroughMerge(Frame* frame, const Edge& edge, Value value);
  const Port* ReturnToCaller(Frame** frame, const Op& result, Value* value);
  const Port* LeaveLoop(Frame** frame, const Op& exit, Value* value);

  ReadyQueue* const queue_;
  FrameStore* const frames_;
  PartialCalls* const partial_calls_;
  IncompleteSites* const incomplete_sites_;
  DeathTeller death_teller_{this, frames_, partial_calls_};
  std::vector<DeferredPort> deferred_ports_;
  std::vector<DeferredArgument> deferred_arguments_;
};

inline void TokenRouter::DeliverControl(Frame* frame, const Edge& edge) {
  if (edge.kind == EdgeKind::kOnly) {
    queue_->Push(frame, edge.op);
  } else if (ABSL_PREDICT_TRUE(edge.kind == EdgeKind::kControl)) {
    CountDown(frame, edge.op);
  } else {
    MarkUnion(frame, edge.op, edge.index);
  }
}

inline void TokenRouter::DeliverControls(Frame* frame, const Port& port) {
  const Edge* edges = frame->region->edges.data();
  for (uint32_t e = port.controls; e < port.end; ++e) DeliverControl(frame, edges[e]);
}

// A tensor that goes to an entry with a lending slot stays in that slot while the frame lives. All frames below only
// borrow it.
inline void TokenRouter::DeliverEntry(Frame* frame, OpId entry, Value value) {
  if (entry == kNone) return value.Release();
  const Op& op = frame->region->ops[entry];
  const PortId port = op.port;
  if (ABSL_PREDICT_FALSE(value.is_dead())) return Kill(frame, frame->region->port_deaths[port]);
  if (op.lending_slot != kNone && value.kind == Value::Kind::kTensor) {
    frame->values()[op.lending_slot] = value;
    frame->owns_tensors = 1;
    value = Value::Borrow(value.tensor);
  }
  DeliverPort(frame, &frame->region->ports[port], value);
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_TOKEN_ROUTER_H_
