// Says how often a worker looks for a call of compiled code to split off.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_FORK_PACE_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_FORK_PACE_H_

#include <algorithm>
#include <cstdint>

namespace tensorflow_recursion {

// Counts the calls that a worker makes from one fork to the next. As long as forks are large, it need not wait. After
// each small one it makes twice as many calls as before until it tries again. For example, where all forks are leaves
// of the recursion, it tries only once in a million calls after a while.
class ForkPace {
 public:
  // A fork of fewer calls than this takes less time to compute than to hand to another thread, which takes some 20 us.
  static constexpr int64_t kWorthwhileCalls = 3000;
  // Where forks turn out small: after how many calls the next one is tried, at first and at most.
  static constexpr int64_t kFirstInterval = 1 << 14;
  static constexpr int64_t kLongestInterval = 1 << 20;
  // A search for a call to split off reads a word of every compiled call's frame. After one without success, the worker
  // makes so many calls for each frame before it searches again.
  static constexpr int64_t kCallsPerSearchedFrame = 4;

  bool IsTime() const { return calls_left_ <= 0; }

  void NoteCalls(int64_t calls) { calls_left_ -= calls; }

  // To be called when a search has ended: with a call to split off, or without one in so many frames.
  void NoteForked() { calls_left_ = interval_; }
  void NoteNothingFound(int64_t searched_frames) { calls_left_ = searched_frames * kCallsPerSearchedFrame; }

  // To be called when a fork has come back that took so many calls, or when nobody had begun it before its result was
  // needed.
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
