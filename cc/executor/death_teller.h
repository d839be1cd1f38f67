// Tells those who must know that a value will never come.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXECUTOR_DEATH_TELLER_H_
#define TENSORFLOW_RECURSION_CC_EXECUTOR_DEATH_TELLER_H_

#include <utility>
#include <vector>

#include "cc/executor/frame.h"
#include "cc/executor/frame_store.h"
#include "cc/executor/partial_calls.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

class TokenRouter;

// When a branch has been decided, the values of its other side are dead. Most operators on that side need not be told:
// they wait for an input that never comes, and end with their frame. Those that must learn of it (merges that may have
// lost all their inputs, calls, results, sends, some loops) stand in a list that was computed with the program, one for
// each source of death. So the cost of a branch that is not taken does not grow with its size.
//
// What learns of a death may die in turn: these lists are worked off in a loop, never by recursion.
class DeathTeller {
 public:
  DeathTeller(TokenRouter* router, FrameStore* frames, PartialCalls* partial_calls)
      : router_(router), frames_(frames), partial_calls_(partial_calls) {}

  void Kill(Frame* frame, const DeathList& list);

 private:
  void Learn(Frame* frame, const DeathEvent& event);
  void LearnInMerge(Frame* frame, const DeathEvent& event);
  void LearnInCall(Frame* frame, const DeathEvent& event);
  void LearnInInput(Frame* frame, const DeathEvent& event);

  TokenRouter* const router_;
  FrameStore* const frames_;
  PartialCalls* const partial_calls_;
  std::vector<std::pair<Frame*, DeathList>> lists_;  // each counts in its frame's `live`
  bool is_telling_ = false;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_DEATH_TELLER_H_
