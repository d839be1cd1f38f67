// Finds call sites that have only some of their arguments, to be opened when nothing else is left to do.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_INCOMPLETE_SITES_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_INCOMPLETE_SITES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "cc/base/ids.h"
#include "cc/executor/frame.h"
#include "cc/executor/partial_calls.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// A call may need a result of its own to get its last argument: f(a, g(f's first result)). So a call site that has some
// arguments may be opened without the others. A worker does so only when it has nothing else to do, in the newest frame
// first, because a call with all its arguments needs no bookkeeping.
//
// A site becomes incomplete when its first live argument comes. (Dead ones alone must not open a frame, because the
// whole call may be dead.) There are two exceptions: where another device decides whether the call lives, the site
// becomes incomplete when that device says so; and a call that enters a recursion is never opened without the
// invariants of that, so its site becomes incomplete when all of these have come. It is incomplete until it has all
// arguments or is opened.
//
// Keeps a list of the frames with incomplete sites, in which a frame counts as one more in its own `live`.
class IncompleteSites {
 public:
  IncompleteSites(const Program& program, const PartialCalls* partial_calls)
      : program_(program), partial_calls_(partial_calls) {}

  // To be called when an argument has come along `edge`, to a call site that waits for more than one and is not open,
  // and before it is counted as arrived. `partial` is what is known of the call; nullptr if it is no partial call.
  // Inlined by force: most arguments of tak come this way, and a call here costs 3 % of all its instructions.
  ABSL_ATTRIBUTE_ALWAYS_INLINE void NoteArgument(Frame* frame, const Edge& edge, bool is_dead,
                                                 const PartialCall* partial);

  // The frames with incomplete sites. `newest` is for when there is one.
  bool empty() const { return frames_.empty(); }
  Frame* newest() const { return frames_.back(); }

  // Whether operator `op` is an incomplete call site.
  bool IsIncomplete(const Frame* frame, OpId op) const;
  // To be called when an incomplete site of the frame is opened. The caller must hold a count of the frame's `live`.
  void NoteOpened(Frame* frame);

  void Clear();

 private:
  bool WaitsForAnnouncement(const Op& op) const { return program_.SiteOf(op).waits_for_announcement; }
  static bool IsAnnounced(const Frame* frame, const Op& op);
  bool HasInvariants(const Frame* frame, const Op& op, uint32_t coming = kNone) const;
  void Link(Frame* frame);
  void Unlink(Frame* frame);
  void CloseGaps();

  const Program& program_;
  const PartialCalls* const partial_calls_;
  // A frame that was taken out leaves a nullptr behind, until the gaps are closed. The last one is never a gap.
  std::vector<Frame*> frames_;
  size_t gaps_ = 0;
};

// Whether the device that decides on the call has said that it lives. It says so by the last input of the call site.
inline bool IncompleteSites::IsAnnounced(const Frame* frame, const Op& op) {
  return !frame->slots_of(op)[op.num_inputs - 1].is_empty();
}

// Whether all invariants of the recursion that the call enters are there, but for `coming`, which is about to come.
inline bool IncompleteSites::HasInvariants(const Frame* frame, const Op& op, uint32_t coming) const {
  const uint32_t num_invariants = program_.SiteOf(op).num_invariants;
  for (uint32_t i = op.num_inputs - num_invariants; i < op.num_inputs; ++i) {
    if (i != coming && frame->slots_of(op)[i].is_empty()) return false;
  }
  return true;
}

inline void IncompleteSites::NoteArgument(Frame* frame, const Edge& edge, bool is_dead, const PartialCall* partial) {
  const Op& op = frame->region->ops[edge.op];
  const bool waits_for_announcement = WaitsForAnnouncement(op);
  const size_t num_pending = frame->pending()[edge.op];
  // If this argument is dead, it is among the dead ones already, but does not count as arrived yet.
  const size_t num_dead = ABSL_PREDICT_TRUE(partial == nullptr) ? 0 : partial->dead_arguments.size() - is_dead;
  const bool has_any = num_pending + num_dead < op.num_tokens;
  const bool was_incomplete = waits_for_announcement ? IsAnnounced(frame, op) : has_any && HasInvariants(frame, op);
  const bool is_last = num_pending == 1;
  if (is_last) {
    if (was_incomplete) NoteOpened(frame);
  } else if (!was_incomplete && !is_dead && (!waits_for_announcement || edge.index + 1 == op.num_inputs) &&
             HasInvariants(frame, op, edge.index)) {
    if (frame->incomplete_sites++ == 0) Link(frame);
  }
}

inline void IncompleteSites::NoteOpened(Frame* frame) {
  if (--frame->incomplete_sites == 0) Unlink(frame);
}

inline void IncompleteSites::Link(Frame* frame) {
  frame->incomplete_position = static_cast<uint32_t>(frames_.size());
  frames_.push_back(frame);
  ++frame->live;
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_INCOMPLETE_SITES_H_
