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
  // The caller's registers, and the depth of its frame.
  std::vector<uint64_t> registers;
  int64_t depth = 0;
  // The calls that led to the caller, the innermost first, as far as errors name them: a few at each end.
  std::vector<std::pair<int64_t, const CodeFunction*>> above;
};

// Runs one call of a compiled function at a time, in parts of bounded length: Start() it, then Resume() until it is
// done. When it meets something that it can't do by itself, it suspends the call, for the caller to do that. Nested
// calls lie on a stack on the heap, so depth costs no C++ stack. Not thread-safe; may move between threads while
// suspended.
//
// A frame is the registers of one invocation. The word before register 0 says where to return to. A call instruction
// says at which register of the caller the callee's registers begin. Arguments are computed right there, behind all
// that the caller still needs.
class Interpreter {
 public:
  // Why Resume() has returned.
  enum class State {
    // results() are there.
    kDone,
    // The budget is used up.
    kPaused,
    // An operator needs its kernel: see kernel_case().
    kNeedsKernel,
    // Compiled code can't do this at all. The function has to be run in another way, from its beginning.
    kUnfit,
    // The call at instruction() would be deeper than allowed, or take more memory than allowed.
    kTooDeep,
    kTooLarge,
    // The results of the call that was split off last are needed: see SupplyResults().
    kJoins,
  };

  // `code` must outlive the interpreter. `run_bytes` is what the run's frames take, which may be at most
  // `max_run_bytes`. Both are nullptr for a stack without limit.
  Interpreter(const Code& code, int64_t max_depth, std::atomic<int64_t>* run_bytes,
              const std::atomic<int64_t>* max_run_bytes)
      : code_(code), max_depth_(max_depth), stack_(run_bytes, max_run_bytes) {}

  // Prepares a call whose frame is at `depth`. Arguments are numbers as bits, and addresses of Arrays and Records,
  // which must outlive the call. Returns false if there is no memory for it.
  bool Start(int function, absl::Span<const uint64_t> arguments, int64_t depth);

  // Prepares a call that was split off, whose results results() will be.
  bool StartForked(const ForkedCall& call);

  // Goes on for at most `*budget` calls and iterations of loops, and sets it to how many of them are left. After kDone
  // the next call begins with Start().
  State Resume(int64_t* budget);

  // Valid after kDone, until the next Start().
  absl::Span<const uint64_t> results() const { return {registers_, code_.functions[function_].results.size()}; }

  // Returns a result that is a record, with a reference for the caller; nullptr if the record is missing. To be called
  // once for each such result.
  Record* TakeRecord(size_t result);

  // To be called after kPaused. Splits off the call that the outermost frame would make next, if that does not need the
  // result that the frame waits for; otherwise that of a frame further in. Looks at every frame. Returns nullopt if
  // there is no such call, or once records have been made. The call that was split off last is joined first.
  std::optional<ForkedCall> Fork();
  // To be called after kJoins, one or the other: Resume() then goes on behind the call, or makes the call here after
  // all.
  void SupplyResults(absl::Span<const uint64_t> results);
  void CallAfterAll() { ++pc_; }

  // To be called after kNeedsKernel: they say which kernel to run, and with which operands, and take its result.
  // Resume() then goes on behind the instruction.
  const KernelCase& kernel_case() const { return *code_.KernelCaseAt(instruction()); }
  Value KernelOperand(const KernelCase::Operand& operand) const;
  void SupplyResult(uint64_t bits);

  // The instruction that comes next, and the depth of the frame that it runs in.
  uint32_t instruction() const { return static_cast<uint32_t>(pc_ - code_.instructions.data()); }
  int64_t depth() const { return depth_; }
  // Visits the functions that are being run, with the depths of their frames, the innermost first. If the call was
  // split off, the frames above it follow, as far as errors name them.
  void ForEachFrame(const std::function<void(int64_t depth, const CodeFunction&)>& visit) const;

  // Gives back memory that a deep recursion has left, and records that nobody has taken. To be called between two
  // calls.
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
