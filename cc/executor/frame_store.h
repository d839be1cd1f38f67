// Opens and ends a worker's frames.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_FRAME_STORE_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_FRAME_STORE_H_

#include <cstdint>

#include "absl/base/optimization.h"
#include "cc/base/ids.h"
#include "cc/executor/frame.h"
#include "cc/executor/frame_pool.h"
#include "cc/executor/inbox.h"
#include "cc/executor/partial_calls.h"
#include "cc/executor/run_log.h"
#include "cc/executor/worker_context.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// Not thread-safe: it is the worker's own.
class FrameStore {
 public:
  // The frames belong to the worker with inbox `owner`.
  FrameStore(const WorkerContext& context, Inbox* owner, PartialCalls* partial_calls)
      : program_(context.program),
        traces_(context.traces),
        pool_(context.program, &context.run->frame_bytes),
        owner_(owner),
        partial_calls_(partial_calls) {}

  // Returns a frame whose count `live` is one, for whoever opens it, who gives it back by Unref() when the frame is
  // started.
  Frame* New(const Region& region, Frame* parent, OpId site_op, uint32_t depth) {
    Frame* frame = pool_.New(region);
    frame->parent = parent;
    frame->site_op = site_op;
    frame->owner = owner_;
    frame->live = 1;
    frame->depth = depth;
    frame->missing = 0;
    if (ABSL_PREDICT_FALSE(traces_) && region.loop == nullptr) LogFrameOpened(program_, *frame);
    return frame;
  }

  // Gives one count of `live` back. Ends the frame if nothing is left in it, and then its parent, and so on upwards.
  void Unref(Frame* frame) {
    while (--frame->live == 0) {
      Frame* const parent = frame->parent;
      if (ABSL_PREDICT_FALSE(frame->has_partial_calls)) partial_calls_->EraseAll(frame);
      if (ABSL_PREDICT_FALSE(traces_)) LogFrameClosed(program_, *frame);
      pool_.Delete(frame);
      if (parent == nullptr) return;
      if (ABSL_PREDICT_FALSE(parent->owner != owner_)) return TellOwner(parent);
      frame = parent;
    }
  }

  // Ends a call that has had no frame: gives back its count in the caller's `live`.
  void EndCall(Frame* caller) {
    if (ABSL_PREDICT_FALSE(caller->owner != owner_)) return TellOwner(caller);
    Unref(caller);
  }

  const Inbox* owner() const { return owner_; }

 private:
  static void TellOwner(Frame* parent) { parent->owner->Post(Message(Message::Kind::kChildEnded, parent)); }

  const Program& program_;
  const bool traces_;
  FramePool pool_;
  Inbox* const owner_;
  PartialCalls* const partial_calls_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_FRAME_STORE_H_
