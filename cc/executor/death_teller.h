// Tells the operators that must know that a value will never come.
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
// lost all their inputs, calls, results, sends, some loops) stand in a list that was computed with the program
// (DeathList). So the cost of a branch that is not taken does not grow with its size.
//
// An operator that learns of a death may turn out to be dead, and then has a list of its own. These lists are worked
// off in a loop, never by recursion.
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
  // The lists that are still to be told. Each counts in its frame's `live`.
  std::vector<std::pair<Frame*, DeathList>> lists_;
  // Kill() is working the lists off.
  bool is_telling_ = false;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXECUTOR_DEATH_TELLER_H_
