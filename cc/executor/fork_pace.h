// How often a worker looks for a call of compiled code to split off.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_FORK_PACE_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_FORK_PACE_H_

#include <algorithm>
#include <cstdint>

namespace tensorflow_recursion {

// Counts the calls that a worker makes from one fork to the next. While forks are large there is no need to wait. After
// each small one the worker makes twice as many calls before it tries again. For example, a recursion whose forks are
// all leaves is asked for one only once in a million calls after a while.
class ForkPace {
 public:
  // A fork of fewer calls than this takes less time than to hand it to another thread: some 20 us.
  static constexpr int64_t kWorthwhileCalls = 3000;
  // How rarely forks are tried where they turn out small, in calls: the first time, and at most.
  static constexpr int64_t kFirstInterval = 1 << 14;
  static constexpr int64_t kLongestInterval = 1 << 20;
  // To look for a call to split off reads a word of every frame, so a search without success is repeated after this
  // many calls for each of them.
  static constexpr int64_t kCallsPerSearchedFrame = 4;

  bool IsTime() const { return calls_left_ <= 0; }

  void NoteCalls(int64_t calls) { calls_left_ -= calls; }

  // A search has ended: with a call to split off, or without one in so many frames.
  void NoteForked() { calls_left_ = interval_; }
  void NoteNothingFound(int64_t searched_frames) { calls_left_ = searched_frames * kCallsPerSearchedFrame; }

  // A fork has come back after so many calls; or nobody had begun it when its result was needed.
  void NoteEnded(int64_t calls) {
    if (calls >= kWorthwhileCalls) {
      interval_ = 0;
    } else {
      NoteNotBegun();
    }
  }
  void NoteNotBegun() { interval_ = std::clamp(2 * interval_, kFirstInterval, kLongestInterval); }

 private:
  // How many calls to make before the next search, and how many from one fork to the next.
  int64_t calls_left_ = 0;
  int64_t interval_ = 0;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_FORK_PACE_H_
