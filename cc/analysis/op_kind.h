// What an operator of a program does.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_OP_KIND_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_OP_KIND_H_

#include <cstdint>

namespace tensorflow_recursion {

enum class OpKind : uint8_t {
  // The executor itself does what these do, when they have all their inputs.
  kScalar,     // unboxed arithmetic; falls back to the kernel
  kPiece,      // several kScalar at once
  kPass,       // forwards input i to port i (Identity with control inputs, IdentityN, Const, NoOp)
  kSwitch,     // inputs data, predicate; ports false, true
  kBranch,     // input predicate; tells the dead side, opens its gates, forwards the predicate
  kSwitchN,    // inputs data, index; ports by index
  kMerge,      // the first live input wins; ports value, value_index
  kUnion,      // fires when every input edge has been live or dead (ControlTrigger)
  kCallSite,   // a call site: opens the callee's frame
  kLoopStart,  // opens a loop's first iteration when every Enter has its value, or is dead if it takes_dead
  kLoopNext,   // opens the next iteration when every NextIteration has its value, or is dead if it takes_dead
  kRetval,     // a value to outside the program
  kRetain,     // packs its inputs into a record
  kRecall,     // input a record; ports its values
  kSend,       // hands its input to another device, or that it is dead
  kKernel,     // everything else: its own kernel
  // These never wait in a queue: a value that reaches them goes straight on.
  kGate,    // a Switch that waits for its data and its branch alone; ports false, true
  kResult,  // hands its input to the consumers of the frame's call site
  kExit,    // hands its input to the frame around the loop
  // Sources of values: their ports are delivered when a frame opens.
  kArgument,    // a value from outside the program
  kEntry,       // argument of a function, or loop variable
  kFrameStart,  // control only: the frame has opened
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_OP_KIND_H_
