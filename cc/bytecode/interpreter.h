// Runs compiled functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_INTERPRETER_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_INTERPRETER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "cc/bytecode/code.h"
#include "cc/bytecode/loose_records.h"
#include "cc/bytecode/register_stack.h"

namespace tensorflow_recursion {

// A call that was split off a running one, for another interpreter: see ForkPlan.
struct ForkedCall {
  const ForkPlan* plan = nullptr;
  std::vector<uint64_t> registers;  // of its caller
  int64_t depth = 0;                // of its caller
  // What errors name of the calls that led to the caller, innermost first: the outermost and the innermost few.
  std::vector<std::pair<int64_t, const CodeFunction*>> above;
};

// One call of a compiled function at a time, in pieces of bounded length: Start() it, then Resume() until it is done.
// What it can't do by itself is handed to the caller, with the call suspended where it stands. Nested calls lie on a
// stack on the heap, so depth costs no C++ stack. Not thread-safe; may move between threads while suspended.
//
// A frame is the registers of one invocation, and in the word before register 0 the instruction to return to. A call
// instruction says at which register of the caller the callee's registers begin: arguments are computed in place there,
// behind whatever the caller still needs.
class Interpreter {
 public:
  enum class State {
    kDone,         // results() are there
    kPaused,       // the budget is used up
    kNeedsKernel,  // an operator does something special: see kernel_case()
    kUnfit,        // compiled code can't do this at all: run the function in another way, from its beginning
    kTooDeep,      // the call at instruction() would be deeper than allowed
    kTooLarge,     // the call at instruction() would take more memory than allowed
    kJoins,        // the results of the call that was split off last are needed: see SupplyResults()
  };

  // `code` must outlive it. `run_bytes` is what the run's frames take, of at most
  // `max_run_bytes`; both are nullptr for a stack without limit.
  Interpreter(const Code& code, int64_t max_depth, std::atomic<int64_t>* run_bytes,
              const std::atomic<int64_t>* max_run_bytes)
      : code_(code), max_depth_(max_depth), stack_(run_bytes, max_run_bytes) {}

  // Prepares a call whose frame is at `depth`. Arguments are numbers as bits, and addresses of Arrays and Records,
  // which must outlive the call. False if there is no memory for it.
  bool Start(int function, absl::Span<const uint64_t> arguments, int64_t depth);

  // The same with a call that was split off; results() will be that call's.
  bool StartForked(const ForkedCall& call);

  // Goes on for `*budget` calls and iterations of loops at most, and says how many of them are left. Returns kDone
  // once; then Start() again.
  State Resume(int64_t* budget);

  // After kDone, until the next Start().
  absl::Span<const uint64_t> results() const { return {registers_, code_.functions[function_].results.size()}; }

  // A result that is a record, with a reference for the caller, or nullptr. Takes the record away: once for each
  // result.
  Record* TakeRecord(size_t result);

  // After kPaused: splits off the call that the outermost frame would make next, if it needs nothing of what that frame
  // waits for, or else that of a frame further in. None once it has made records. Looks at every frame. What was split
  // off is joined in the opposite order: the last one first.
  std::optional<ForkedCall> Fork();
  // After kJoins; Resume() then goes on behind the call, or makes it here after all.
  void SupplyResults(absl::Span<const uint64_t> results);
  void CallAfterAll() { ++pc_; }

  // After kNeedsKernel: what the kernel gets, and how its result goes back in. Resume() then goes on behind it.
  const KernelCase& kernel_case() const { return *code_.KernelCaseAt(instruction()); }
  Value KernelOperand(const KernelCase::Operand& operand) const;
  void SupplyResult(uint64_t bits);

  // Where it stands.
  uint32_t instruction() const { return static_cast<uint32_t>(pc_ - code_.instructions.data()); }
  int64_t depth() const { return depth_; }
  // The functions that are being run with the depths of their frames, innermost first. If this one was split off, what
  // errors name of the frames above it follows.
  void ForEachFrame(const std::function<void(int64_t depth, const CodeFunction&)>& visit) const;

  // Gives back memory that a deep recursion has left, and records that nobody has taken. To be called between calls.
  void Trim();

 private:
  bool Begin(int function, uint32_t frame_words, absl::Span<const uint64_t> registers, int64_t depth);
  uint64_t* MakeRoom(uint64_t* window, uint32_t words);
  State Suspend(const Instruction* pc, uint64_t* registers, int64_t depth, State state);
  std::vector<std::pair<int64_t, const CodeFunction*>> PathAbove(const uint64_t* registers, int64_t depth) const;
  bool ReadElement(const Instruction& instruction, uint64_t* registers) const;
  bool OpenOther(const Instruction& instruction, uint64_t* registers) const;

  const Code& code_;
  const int64_t max_depth_;
  RegisterStack stack_;
  LooseRecords loose_;
  int function_ = 0;
  const Instruction* pc_ = nullptr;
  uint64_t* registers_ = nullptr;
  int64_t depth_ = 0;
  std::vector<std::pair<int64_t, const CodeFunction*>> above_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_INTERPRETER_H_
