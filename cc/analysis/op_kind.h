// The kinds of operators that a program has.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_OP_KIND_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_OP_KIND_H_

#include <cstdint>

namespace tensorflow_recursion {

// What an operator does when it fires.
enum class OpKind : uint8_t {
  // The executor itself does what these do, when they have all their inputs.
  kScalar,    // computes with numbers as they lie in slots, and has the kernel do what it cannot
  kPiece,     // does the work of several kScalar at once
  kPass,      // hands input i to port i (Identity with control inputs, IdentityN, Const, NoOp)
  kSwitch,    // hands input 0, the data, to port 1 if input 1 is true, else to port 0
  kBranch,    // reads a condition, opens the gates of one side, tells the other that it is dead; hands the condition on
  kSwitchN,   // hands input 0, the data, to the port whose number input 1 is
  kMerge,     // hands its first live input to port 0, and the number of that input to port 1
  kUnion,     // fires when every input edge has been live or dead (ControlTrigger)
  kCallSite,  // opens the callee's frame
  kLoopStart,  // opens a loop's first iteration when every Enter has its value, or is dead if it takes_dead
  kLoopNext,   // opens the next iteration when every NextIteration has its value, or is dead if it takes_dead
  kRetval,     // hands its input to whoever runs the program
  kRetain,     // packs its inputs into a record
  kRecall,     // takes a record apart: value i goes to port i
  kSend,       // sends its input to another device, or tells that device that it is dead
  kKernel,     // has its own kernel run, as all operators do that are none of the others
  // These never wait in a queue: a value that reaches them goes straight on.
  kGate,    // does what kSwitch does, but waits for nothing besides its data and its branch
  kResult,  // hands its input to the consumers of the frame's call site
  kExit,    // hands its input to the frame around the loop
  // Sources of values: their ports are delivered when a frame opens.
  kArgument,    // yields what the program is run with
  kEntry,       // yields an argument of its function, or a variable of its loop
  kFrameStart,  // says that the frame has opened, and yields no value
};

// Whether operators of this kind can read constants and invariants from a table, besides tokens.
inline bool ReadsTable(OpKind kind) {
  return kind == OpKind::kScalar || kind == OpKind::kPiece || kind == OpKind::kKernel || kind == OpKind::kPass ||
         kind == OpKind::kBranch || kind == OpKind::kRetain;
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_OP_KIND_H_
