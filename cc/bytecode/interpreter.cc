// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/interpreter.h"

#include <algorithm>

#include "absl/base/attributes.h"
#include "absl/base/optimization.h"
#include "cc/base/call_path.h"
#include "cc/values/scalar_operators.h"

namespace tensorflow_recursion {
namespace {

// How large a stack is kept from one call to the next.
constexpr size_t kKeptWords = size_t{64} << 10;

template <template <typename> class Operation, typename T>
inline bool Compute(uint64_t x, uint64_t y, uint64_t* out) {
  typename Operation<T>::Out result;
  const bool is_done = Operation<T>::Run(FromBits<T>(x), FromBits<T>(y), &result);
  *out = ToBits(result);
  return is_done;
}

template <template <typename> class Operation, typename T>
inline bool Holds(uint64_t x, uint64_t y) {
  bool result = false;
  Operation<T>::Run(FromBits<T>(x), FromBits<T>(y), &result);
  return result;
}

inline uint64_t LoadElement(const void* data, uint64_t index, int log_size) {
  switch (log_size) {
    case 0:
      return static_cast<const uint8_t*>(data)[index];
    case 1:
      return static_cast<const uint16_t*>(data)[index];
    case 2:
      return static_cast<const uint32_t*>(data)[index];
    default:
      return static_cast<const uint64_t*>(data)[index];
  }
}

// An index as 64 bits. A negative one is counted from the end if `access` says so. One that is out of range stays so.
inline uint64_t Position(uint64_t bits, ElementAccess access, uint64_t length) {
  int64_t index = access.is_int64 ? FromBits<int64_t>(bits) : FromBits<int32_t>(bits);
  if (index < 0 && access.counts_from_end) index += static_cast<int64_t>(length);
  return static_cast<uint64_t>(index);
}

// The word below a frame: the instruction to return to, how far the caller's register 0 lies below, and which of the
// caller's registers gets the result. In one word, because nothing goes on before the caller's registers are found.
uint64_t Linkage(uint64_t instruction, uint16_t distance, uint16_t result) {
  return instruction | uint64_t{distance} << 32 | uint64_t{result} << 48;
}
uint32_t ReturnOf(uint64_t linkage) { return static_cast<uint32_t>(linkage); }
uint64_t DistanceOf(uint64_t linkage) { return (linkage >> 32) & 0xffff; }
uint64_t ResultOf(uint64_t linkage) { return linkage >> 48; }

}  // namespace

bool Interpreter::Start(int function, absl::Span<const uint64_t> arguments, int64_t depth) {
  const CodeFunction& callee = code_.functions[function];
  above_.clear();
  pc_ = code_.instructions.data() + callee.begin;
  return Begin(function, callee.frame_words, arguments, depth);
}

bool Interpreter::StartForked(const ForkedCall& call) {
  const auto num_results = static_cast<uint32_t>(code_.functions[call.plan->callee].results.size());
  const uint32_t frame_words = std::max(code_.functions[call.plan->function].frame_words, num_results);
  above_ = call.above;
  pc_ = code_.instructions.data() + call.plan->begin;
  return Begin(static_cast<int>(call.plan->callee), frame_words, call.registers, call.depth);
}

// `function` is the one whose results the caller wants.
bool Interpreter::Begin(int function, uint32_t frame_words, absl::Span<const uint64_t> registers, int64_t depth) {
  const size_t words = frame_words + size_t{1};
  if (stack_.end() < stack_.begin() + words && !stack_.Grow(words)) return false;
  function_ = function;
  registers_ = stack_.begin() + 1;
  registers_[-1] = Linkage(Code::kHaltInstruction, 0, 0);
  std::copy(registers.begin(), registers.end(), registers_);
  depth_ = depth;
  return true;
}

Record* Interpreter::TakeRecord(size_t result) { return loose_.Take(FromBits<Record*>(results()[result])); }

void Interpreter::Trim() {
  loose_.Clear();
  stack_.Shrink(kKeptWords);
}

// Makes room for the window, and returns where it is now, because the stack may have moved. Returns nullptr if the run
// may not have so much memory.
ABSL_ATTRIBUTE_NOINLINE uint64_t* Interpreter::MakeRoom(uint64_t* window, uint32_t words) {
  const size_t position = window - stack_.begin();
  return stack_.Grow(position + words) ? stack_.begin() + position : nullptr;
}

Interpreter::State Interpreter::Suspend(const Instruction* pc, uint64_t* registers, int64_t depth, State state) {
  pc_ = pc;
  registers_ = registers;
  depth_ = depth;
  return state;
}

ABSL_ATTRIBUTE_NOINLINE bool Interpreter::ReadElement(const Instruction& instruction, uint64_t* registers) const {
  const Instruction& operands = *(&instruction + 1);
  const ElementAccess access = ElementAccess::Decode(instruction.c);
  const auto* array = FromBits<const Array*>(registers[instruction.b]);
  const uint64_t y = registers[operands.y()];
  uint64_t position = 0;
  if (access.is_matrix) {
    const uint64_t row = Position(y, access, array->rows);
    const uint64_t column = Position(registers[operands.z()], access, array->columns);
    if (row >= array->rows || column >= array->columns) return false;
    position = row * array->columns + column;
  } else {
    position = Position(y, access, array->length);
    if (position >= array->length) return false;
  }
  registers[instruction.a] = LoadElement(array->data, position, access.log_size);
  return true;
}

// Opens a record that is not laid out as expected. One without values stands for zeros.
ABSL_ATTRIBUTE_NOINLINE bool Interpreter::OpenOther(const Instruction& instruction, uint64_t* registers) const {
  Record* const found = code_.records[instruction.c].Find(FromBits<Record*>(registers[instruction.b]));
  registers[instruction.a] = ToBits(found);
  return found != nullptr;
}

Value Interpreter::KernelOperand(const KernelCase::Operand& operand) const {
  using Kind = KernelCase::Operand::Kind;
  if (operand.kind == Kind::kConstant) return Value::Scalar(code_.constants[operand.position]);
  const uint64_t bits = registers_[operand.position];
  return operand.kind == Kind::kNumber ? Value::Scalar(bits) : Value::Borrow(FromBits<const Array*>(bits)->tensor);
}

void Interpreter::SupplyResult(uint64_t bits) {
  registers_[kernel_case().result] = bits;
  pc_ += SizeOf(pc_->opcode);
}

void Interpreter::ForEachFrame(const std::function<void(int64_t depth, const CodeFunction&)>& visit) const {
  int64_t depth = depth_;
  uint32_t at = instruction();
  for (const uint64_t* registers = registers_;; registers -= DistanceOf(registers[-1])) {
    visit(depth--, *code_.FunctionAt(at));
    const uint64_t linkage = registers[-1];
    if (ReturnOf(linkage) == Code::kHaltInstruction) break;
    at = ReturnOf(linkage) - 1;  // in the call: what comes behind it may belong to another function
  }
  for (const auto& [depth_above, function] : above_) visit(depth_above, *function);
}

// --- Calls that are split off -----------------------------------------------------------------------

std::optional<ForkedCall> Interpreter::Fork() {
  // What another thread is given must live as long as that runs. Records that were made here may end before, by an
  // error.
  if (!loose_.empty()) return std::nullopt;
  ForkedCall fork;
  uint64_t* split = nullptr;  // the callee's registers
  int64_t depth = depth_;
  for (uint64_t* registers = registers_;;) {
    const uint64_t linkage = registers[-1];
    if (ReturnOf(linkage) == Code::kHaltInstruction) break;
    --depth;
    if (const ForkPlan* const plan = code_.PlanOfCall(ReturnOf(linkage) - 1)) {
      split = registers;
      fork.plan = plan;
      fork.depth = depth;
    }
    registers -= DistanceOf(linkage);
  }
  if (split == nullptr) return std::nullopt;
  uint64_t* const caller = split - DistanceOf(split[-1]);
  split[-1] = Linkage(fork.plan->rest, static_cast<uint16_t>(DistanceOf(split[-1])),
                      static_cast<uint16_t>(ResultOf(split[-1])));
  fork.registers.assign(caller, caller + fork.plan->num_registers);
  fork.above = PathAbove(caller, fork.depth);
  return fork;
}

std::vector<std::pair<int64_t, const CodeFunction*>> Interpreter::PathAbove(const uint64_t* registers,
                                                                            int64_t depth) const {
  std::vector<std::pair<int64_t, const CodeFunction*>> path;
  const int64_t innermost = depth - kCallPathEnd;
  while (ReturnOf(registers[-1]) != Code::kHaltInstruction) {
    --depth;
    const bool is_named = depth <= kCallPathEnd || depth >= innermost;
    if (is_named) path.emplace_back(depth, code_.FunctionAt(ReturnOf(registers[-1]) - 1));
    registers -= DistanceOf(registers[-1]);
  }
  path.insert(path.end(), above_.begin(), above_.end());
  return path;
}

void Interpreter::SupplyResults(absl::Span<const uint64_t> results) {
  uint64_t* const first = registers_ + (results.size() == 1 ? pc_->a : pc_->c);
  std::copy(results.begin(), results.end(), first);
  pc_ += 1 + SizeOf((pc_ + 1)->opcode);  // behind the join, and behind the call that follows it
}

// --- The loop ---------------------------------------------------------------------------------------

// Each instruction ends by going on with another. With computed gotos every one of them has a jump of its own, which
// processors predict better than the one jump of a switch. Other compilers get the switch.
//
// That is why Resume() is the one long function of this library. A goto reaches only labels of its own function, so all
// instructions have to be in one. And all of them work on the same few variables (the instruction, the registers, the
// depth, the budget), which the compiler keeps in the processor's registers as long as nobody outside can change them:
// to pass them to a function for each group of instructions would store and load them around every call of it.
#if defined(__GNUC__)
#define TFR_CASE(name) \
  name:
#define TFR_DISPATCH() goto* kLabels[static_cast<int>(pc->opcode)]  // NOLINT(bugprone-macro-parentheses)
#else
#define TFR_CASE(name) case Opcode::k##name:
#define TFR_DISPATCH() goto dispatch
#endif

// Goes on `distance` instructions further.
#define TFR_GO(distance) \
  do {                   \
    pc += (distance);    \
    TFR_DISPATCH();      \
  } while (false)

#define TFR_SUSPEND(state)                      \
  do {                                          \
    *budget = left;                             \
    return Suspend(pc, r, depth, State::state); \
  } while (false)

// a = b op c, where c is a register or a constant.
#define TFR_COMPUTE(name, type, T)                                                                             \
  TFR_CASE(name##type) {                                                                                       \
    if (ABSL_PREDICT_FALSE(!(Compute<operators::name, T>(r[pc->b], r[pc->c], &result)))) goto special;         \
    r[pc->a] = result;                                                                                         \
    TFR_GO(1);                                                                                                 \
  }                                                                                                            \
  TFR_CASE(name##type##K) {                                                                                    \
    if (ABSL_PREDICT_FALSE(!(Compute<operators::name, T>(r[pc->b], constants[pc->c], &result)))) goto special; \
    r[pc->a] = result;                                                                                         \
    TFR_GO(1);                                                                                                 \
  }

#define TFR_UNLESS(name, type, T)                                                                                \
  TFR_CASE(Unless##name##type) { TFR_GO((Holds<operators::name, T>(r[pc->a], r[pc->b]) ? 1 : pc->distance())); } \
  TFR_CASE(Unless##name##type##K) {                                                                              \
    TFR_GO((Holds<operators::name, T>(r[pc->a], constants[pc->b]) ? 1 : pc->distance()));                        \
  }

// Returns to the caller with one result.
#define TFR_RETURN(value)              \
  do {                                 \
    const uint64_t returned = (value); \
    const uint64_t linkage = r[-1];    \
    pc = code + ReturnOf(linkage);     \
    r -= DistanceOf(linkage);          \
    r[ResultOf(linkage)] = returned;   \
    --depth;                           \
    TFR_DISPATCH();                    \
  } while (false)

#define TFR_RETURN_UNLESS(name, type, T)                                  \
  TFR_CASE(ReturnUnless##name##type) {                                    \
    if (Holds<operators::name, T>(r[pc->b], r[pc->c])) TFR_GO(1);         \
    TFR_RETURN(r[pc->a]);                                                 \
  }                                                                       \
  TFR_CASE(ReturnUnless##name##type##K) {                                 \
    if (Holds<operators::name, T>(r[pc->b], constants[pc->c])) TFR_GO(1); \
    TFR_RETURN(r[pc->a]);                                                 \
  }

#define TFR_RETURN_RESULT(name, type, T)                              \
  TFR_CASE(Return##name##type) {                                      \
    Compute<operators::name, T>(r[pc->b], r[pc->c], &result);         \
    TFR_RETURN(result);                                               \
  }                                                                   \
  TFR_CASE(Return##name##type##K) {                                   \
    Compute<operators::name, T>(r[pc->b], constants[pc->c], &result); \
    TFR_RETURN(result);                                               \
  }

// Makes the call of an instruction of `size` words. It enters the callee `behind` instructions after its first one. But
// first it runs `unless`, which may find that the call would return at once.
#define TFR_CALL(size, behind, unless)                                  \
  do {                                                                  \
    const CodeEntry callee = entries[pc->b];                            \
    uint64_t* window = r + pc->c;                                       \
    if (ABSL_PREDICT_FALSE(--left < 0)) TFR_SUSPEND(kPaused);           \
    if (ABSL_PREDICT_FALSE(depth >= max_depth_)) TFR_SUSPEND(kTooDeep); \
    unless;                                                             \
    if (ABSL_PREDICT_FALSE(window + callee.frame_words > end)) {        \
      uint64_t* const moved = MakeRoom(window, callee.frame_words);     \
      if (moved == nullptr) TFR_SUSPEND(kTooLarge);                     \
      window = moved;                                                   \
      end = stack_.end();                                               \
    }                                                                   \
    window[-1] = Linkage(pc + (size) - code, pc->c, pc->a);             \
    r = window;                                                         \
    pc = code + callee.begin + (behind);                                \
    ++depth;                                                            \
    TFR_DISPATCH();                                                     \
  } while (false)

// Computes the argument of a call. This may run twice, because the call may be suspended and begun anew: so the
// argument never goes to the register that it is computed from.
#define TFR_ARGUMENT(name, T)                                                 \
  do {                                                                        \
    Compute<operators::name, T>(r[pc[1].y()], constants[pc[1].z()], &result); \
    r[pc[1].c] = result;                                                      \
  } while (false)

#define TFR_CALL_WITH(name, type, T) \
  TFR_CASE(Call##name##type##K) {    \
    TFR_ARGUMENT(name, T);           \
    TFR_CALL(2, 0, );                \
  }

// Returns at once from a call whose callee would do so, because its registers, which begin at `window`, do not compare
// as `name` says.
#define TFR_UNLESS_RETURNED(size, name, T, y)              \
  if (!(Holds<operators::name, T>(window[callee.x], y))) { \
    r[pc->a] = window[callee.returned];                    \
    TFR_GO(size);                                          \
  }

#define TFR_COMPARED_CALL(name, type, T)                                                              \
  TFR_CASE(CallIf##name##type) { TFR_CALL(1, 1, TFR_UNLESS_RETURNED(1, name, T, window[callee.y])); } \
  TFR_CASE(CallIf##name##type##K) { TFR_CALL(1, 1, TFR_UNLESS_RETURNED(1, name, T, constants[callee.y])); }

#define TFR_COMPARED_CALL_WITH(argument, name, type, T)                   \
  TFR_CASE(Call##argument##type##KIf##name##type) {                       \
    TFR_ARGUMENT(argument, T);                                            \
    TFR_CALL(2, 1, TFR_UNLESS_RETURNED(2, name, T, window[callee.y]));    \
  }                                                                       \
  TFR_CASE(Call##argument##type##KIf##name##type##K) {                    \
    TFR_ARGUMENT(argument, T);                                            \
    TFR_CALL(2, 1, TFR_UNLESS_RETURNED(2, name, T, constants[callee.y])); \
  }

#define TFR_READ(size, T, index, Index)                                                           \
  TFR_CASE(Element##size##By##index) {                                                            \
    const auto* array = FromBits<const Array*>(r[pc->b]);                                         \
    const auto position = static_cast<uint64_t>(static_cast<int64_t>(FromBits<Index>(r[pc->c]))); \
    if (ABSL_PREDICT_FALSE(position >= array->length)) goto special;                              \
    r[pc->a] = static_cast<const T*>(array->data)[position];                                      \
    TFR_GO(1);                                                                                    \
  }

// clang-format off: it takes these macros for statements that go on
Interpreter::State Interpreter::Resume(int64_t* budget) {
#if defined(__GNUC__)
  static const void* const kLabels[] = {
#define TFR_LABEL(name, type, T) &&name##type, &&name##type##K,
      TFR_ARITHMETIC(TFR_LABEL) TFR_COMPARISONS(TFR_LABEL)
#undef TFR_LABEL
#define TFR_LABEL(name, type, T) &&Unless##name##type, &&Unless##name##type##K,
          TFR_COMPARISONS(TFR_LABEL)
#undef TFR_LABEL
#define TFR_LABEL(name, type, T) &&ReturnUnless##name##type, &&ReturnUnless##name##type##K,
              TFR_COMPARISONS(TFR_LABEL)
#undef TFR_LABEL
#define TFR_LABEL(name, type, T) &&Return##name##type, &&Return##name##type##K,
              TFR_RETURNED(TFR_LABEL)
#undef TFR_LABEL
#define TFR_LABEL(name, type, T) &&Call##name##type##K,
              TFR_ARGUMENTS(TFR_LABEL)
#undef TFR_LABEL
#define TFR_LABEL(name, type, T) &&CallIf##name##type, &&CallIf##name##type##K,
                  TFR_COMPARISONS(TFR_LABEL)
#undef TFR_LABEL
#define TFR_LABEL(argument, name, type, T) \
  &&Call##argument##type##KIf##name##type, &&Call##argument##type##KIf##name##type##K,
                  TFR_COMPARED_CALLS(TFR_LABEL)
#undef TFR_LABEL
#define TFR_LABEL(size, T, index, Index) &&Element##size##By##index,
              TFR_ELEMENTS(TFR_LABEL)
#undef TFR_LABEL
#define TFR_LABEL(name, format) &&name,  // NOLINT(bugprone-macro-parentheses)
                  TFR_OTHER_INSTRUCTIONS(TFR_LABEL)
#undef TFR_LABEL
  };
#endif
  const Instruction* pc = pc_;
  uint64_t* r = registers_;
  int64_t depth = depth_;
  int64_t left = *budget;
  uint64_t result = 0;
  const uint64_t* end = stack_.end();
  const Instruction* const code = code_.instructions.data();
  const uint64_t* const constants = code_.constants.data();
  const CodeEntry* const entries = code_.entries.data();
#if defined(__GNUC__)
  TFR_DISPATCH();
#else
dispatch:
  switch (pc->opcode) {
#endif
  TFR_ARITHMETIC(TFR_COMPUTE)
  TFR_COMPARISONS(TFR_COMPUTE)
  TFR_COMPARISONS(TFR_UNLESS)
  TFR_COMPARISONS(TFR_RETURN_UNLESS)
  TFR_RETURNED(TFR_RETURN_RESULT)
  TFR_ARGUMENTS(TFR_CALL_WITH)
  TFR_COMPARISONS(TFR_COMPARED_CALL)
  TFR_COMPARED_CALLS(TFR_COMPARED_CALL_WITH)
  TFR_ELEMENTS(TFR_READ)
  TFR_CASE(Move2) {
    r[pc->a] = r[pc->b];
    r[pc->a + 1] = r[pc->c];
    TFR_GO(1);
  }
  TFR_CASE(Move) {
    r[pc->a] = r[pc->b];
    TFR_GO(1);
  }
  TFR_CASE(Constant) {
    r[pc->a] = constants[pc->b];
    TFR_GO(1);
  }
  TFR_CASE(LogicalAnd) {
    r[pc->a] = r[pc->b] & r[pc->c];
    TFR_GO(1);
  }
  TFR_CASE(LogicalOr) {
    r[pc->a] = r[pc->b] | r[pc->c];
    TFR_GO(1);
  }
  TFR_CASE(LogicalNot) {
    r[pc->a] = r[pc->b] ^ 1;
    TFR_GO(1);
  }
  TFR_CASE(Apply) {
    const NumberFunction apply = code_.operators[pc->c];
    if (ABSL_PREDICT_FALSE(!apply(r[pc->b], r[pc[1].y()], r[pc[1].z()], &r[pc->a]))) goto special;
    TFR_GO(2);
  }
  TFR_CASE(ElementAt) {
    if (ABSL_PREDICT_FALSE(!ReadElement(*pc, r))) goto special;
    TFR_GO(2);
  }
  TFR_CASE(Jump) { TFR_GO(pc->distance()); }
  TFR_CASE(Repeat) {
    if (ABSL_PREDICT_FALSE(--left < 0)) TFR_SUSPEND(kPaused);
    TFR_GO(pc->distance());
  }
  TFR_CASE(Unless) { TFR_GO(FromBits<bool>(r[pc->a]) ? 1 : pc->distance()); }
  TFR_CASE(Case) {
    const auto side = FromBits<int32_t>(r[pc->a]);
    TFR_GO(1 + (side < 0 || side >= pc->b ? pc->b - 1 : side));
  }
  TFR_CASE(Call) { TFR_CALL(1, 0, ); }
  TFR_CASE(Join) { TFR_SUSPEND(kJoins); }
  TFR_CASE(Return) { TFR_RETURN(r[pc->a]); }
  TFR_CASE(ReturnAll) {
    const uint64_t linkage = r[-1];
    pc = code + ReturnOf(linkage);
    r -= DistanceOf(linkage);
    --depth;
    TFR_DISPATCH();
  }
  TFR_CASE(OpenRecord) {
    const auto* record = FromBits<const Record*>(r[pc->b]);
    if (ABSL_PREDICT_TRUE(record != nullptr && code_.records[pc->c].IsOf(*record))) {
      r[pc->a] = r[pc->b];
    } else if (!OpenOther(*pc, r)) {
      TFR_SUSPEND(kUnfit);
    }
    TFR_GO(1);
  }
  TFR_CASE(Field) {
    r[pc->a] = FromBits<const Record*>(r[pc->b])->bits(pc->c);
    TFR_GO(1);
  }
  TFR_CASE(MakeRecord) {
    r[pc->a] = ToBits(loose_.Add(code_.records[pc->b].New()));
    TFR_GO(1);
  }
  TFR_CASE(KeepNumber) {
    FromBits<Record*>(r[pc->a])->set_bits(pc->b, r[pc->c]);
    TFR_GO(1);
  }
  TFR_CASE(KeepRecord) {
    FromBits<Record*>(r[pc->a])->set_bits(pc->b, ToBits(loose_.Take(FromBits<Record*>(r[pc->c]))));
    TFR_GO(1);
  }
  TFR_CASE(Halt) { TFR_SUSPEND(kDone); }
#if !defined(__GNUC__)
  }
#endif

special:
  *budget = left;
  Suspend(pc, r, depth, State::kNeedsKernel);
  return code_.KernelCaseAt(instruction()) == nullptr ? State::kUnfit : State::kNeedsKernel;
}
// clang-format on

#undef TFR_READ
#undef TFR_COMPARED_CALL_WITH
#undef TFR_COMPARED_CALL
#undef TFR_UNLESS_RETURNED
#undef TFR_CALL_WITH
#undef TFR_ARGUMENT
#undef TFR_CALL
#undef TFR_RETURN_RESULT
#undef TFR_RETURN_UNLESS
#undef TFR_RETURN
#undef TFR_UNLESS
#undef TFR_COMPUTE
#undef TFR_SUSPEND
#undef TFR_GO
#undef TFR_DISPATCH
#undef TFR_CASE

}  // namespace tensorflow_recursion
