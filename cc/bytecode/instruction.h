// Defines the instructions of compiled code: what each is called, which operands it has, how it is encoded.
//
// An instruction is 8 bytes: an opcode and three operands of 16 bits. Operands are registers, which hold a number (or
// the address of an Array) in 64 bits, constants, jump distances, or a function. Arithmetic comes once for each type
// and once more, as `AddInt32K`, for a second operand that is a constant. `UnlessLessInt32` compares and jumps if the
// comparison does not hold: an `if` or the test of a loop is one instruction. What often comes together around calls is
// one instruction, too: `ReturnUnlessLessInt32` compares and returns, `ReturnAddInt32` adds and returns the sum,
// `CallSubInt32K` computes an argument and calls. `CallIfLessInt32` calls a function whose first instruction is
// `ReturnUnlessLessInt32`: it compares for the callee, and makes a frame only if the callee would not return at once.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_INSTRUCTION_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_INSTRUCTION_H_

#include <cstdint>

namespace tensorflow_recursion {

// clang-format off
#define TFR_FOR_INTEGERS(X, name) X(name, Int32, int32_t) X(name, Int64, int64_t)
#define TFR_FOR_FLOATS(X, name) X(name, Float, float) X(name, Double, double)
#define TFR_FOR_NUMBERS(X, name) TFR_FOR_INTEGERS(X, name) TFR_FOR_FLOATS(X, name)

// Binary operators of cc/values/scalar_operators.h that have instructions of their own; all others go through kApply.
#define TFR_ARITHMETIC(X)                                                                  \
  TFR_FOR_NUMBERS(X, Add) TFR_FOR_NUMBERS(X, Sub) TFR_FOR_NUMBERS(X, Mul)                  \
  TFR_FOR_NUMBERS(X, Minimum) TFR_FOR_NUMBERS(X, Maximum) TFR_FOR_FLOATS(X, RealDiv)       \
  TFR_FOR_INTEGERS(X, FloorDiv) TFR_FOR_INTEGERS(X, FloorMod)                              \
  TFR_FOR_INTEGERS(X, TruncateDiv) TFR_FOR_INTEGERS(X, TruncateMod)                        \
  TFR_FOR_INTEGERS(X, BitwiseAnd) TFR_FOR_INTEGERS(X, BitwiseOr) TFR_FOR_INTEGERS(X, BitwiseXor) \
  TFR_FOR_INTEGERS(X, LeftShift) TFR_FOR_INTEGERS(X, RightShift)

#define TFR_COMPARISONS(X)                                                                 \
  TFR_FOR_NUMBERS(X, Less) TFR_FOR_NUMBERS(X, LessEqual) TFR_FOR_NUMBERS(X, Greater)       \
  TFR_FOR_NUMBERS(X, GreaterEqual) TFR_FOR_NUMBERS(X, Equal) TFR_FOR_NUMBERS(X, NotEqual)

// Operators whose result may be returned at once, as by ReturnAddInt32. None of them ever needs its kernel.
#define TFR_RETURNED(X) TFR_FOR_NUMBERS(X, Add) TFR_FOR_NUMBERS(X, Sub) TFR_FOR_NUMBERS(X, Mul)

// Operators that may compute an argument of a call, with a constant, as by CallSubInt32K.
#define TFR_ARGUMENTS(X) TFR_FOR_INTEGERS(X, Add) TFR_FOR_INTEGERS(X, Sub)

// Calls that compute an argument and compare for their callee, by the operator of the argument and the comparison. Both
// are of one type.
#define TFR_COMPARED(X, argument, type, T)                                                 \
  X(argument, Less, type, T) X(argument, LessEqual, type, T) X(argument, Greater, type, T) \
  X(argument, GreaterEqual, type, T) X(argument, Equal, type, T) X(argument, NotEqual, type, T)
#define TFR_COMPARED_CALLS(X)                                                              \
  TFR_COMPARED(X, Add, Int32, int32_t) TFR_COMPARED(X, Sub, Int32, int32_t)                \
  TFR_COMPARED(X, Add, Int64, int64_t) TFR_COMPARED(X, Sub, Int64, int64_t)

// Reads of one element of a vector, by the size of the element and the type of the index.
#define TFR_ELEMENTS(X)                                                                    \
  X(1, uint8_t, Int32, int32_t) X(2, uint16_t, Int32, int32_t)                             \
  X(4, uint32_t, Int32, int32_t) X(8, uint64_t, Int32, int32_t)                            \
  X(1, uint8_t, Int64, int64_t) X(2, uint16_t, Int64, int64_t)                             \
  X(4, uint32_t, Int64, int64_t) X(8, uint64_t, Int64, int64_t)

// The names and formats of all other instructions. a, b and c are the operands in the order of their encoding.
#define TFR_OTHER_INSTRUCTIONS(X)                                                          \
  X(Move, kRR)            /* a = b */                                                      \
  X(Move2, kRRR)          /* a = b, then register a + 1 = c */                             \
  X(Constant, kRK)        /* a = constants[b] */                                           \
  X(LogicalAnd, kRRR)     /* a = b and c */                                                \
  X(LogicalOr, kRRR)                                                                       \
  X(LogicalNot, kRR)                                                                       \
  X(Apply, kApply)        /* a = operators[c](b, y, z), which may have to ask the kernel */ \
  X(ElementAt, kElementAt) /* a = array b [y] or [y, z] */                                 \
  X(Jump, kJump)          /* on by c instructions */                                       \
  X(Repeat, kJump)        /* the same, back to the beginning of a loop */                  \
  X(Unless, kRJump)       /* jumps by c unless a */                                        \
  X(Case, kCase)          /* goes to the a-th of the b jumps that follow, or the last */   \
  X(Call, kCall)          /* a = functions[b](registers from c on), whose register 0 is c */ \
  X(Join, kCall)          /* the Call that follows it was split off: a = its result */   \
  X(Return, kR)           /* a is the result */                                            \
  X(ReturnAll, kNone)     /* the results are the first registers */                        \
  X(OpenRecord, kOpenRecord) /* a = record b, which has to be laid out as records[c] */    \
  X(Field, kField)        /* a = value c of record b */                                    \
  X(MakeRecord, kMakeRecord) /* a = a new record, laid out as records[b] */                \
  X(KeepNumber, kKeep)    /* value b of the new record a = c */                            \
  X(KeepRecord, kKeep)    /* the same of a value that is a record */                       \
  X(Halt, kNone)          /* the end of the outermost call */
// clang-format on

// What an instruction does. The lists above say what each opcode computes.
enum class Opcode : uint16_t {
#define TFR_OPCODES(name, type, T) k##name##type, k##name##type##K,
  TFR_ARITHMETIC(TFR_OPCODES) TFR_COMPARISONS(TFR_OPCODES)
#undef TFR_OPCODES
#define TFR_OPCODES(name, type, T) kUnless##name##type, kUnless##name##type##K,
      TFR_COMPARISONS(TFR_OPCODES)
#undef TFR_OPCODES
#define TFR_OPCODES(name, type, T) kReturnUnless##name##type, kReturnUnless##name##type##K,
          TFR_COMPARISONS(TFR_OPCODES)
#undef TFR_OPCODES
#define TFR_OPCODES(name, type, T) kReturn##name##type, kReturn##name##type##K,
              TFR_RETURNED(TFR_OPCODES)
#undef TFR_OPCODES
#define TFR_OPCODES(name, type, T) kCall##name##type##K,
                  TFR_ARGUMENTS(TFR_OPCODES)
#undef TFR_OPCODES
#define TFR_OPCODES(name, type, T) kCallIf##name##type, kCallIf##name##type##K,
                      TFR_COMPARISONS(TFR_OPCODES)
#undef TFR_OPCODES
#define TFR_OPCODES(argument, name, type, T) \
  kCall##argument##type##KIf##name##type, kCall##argument##type##KIf##name##type##K,
                          TFR_COMPARED_CALLS(TFR_OPCODES)
#undef TFR_OPCODES
#define TFR_OPCODES(size, T, index, Index) kElement##size##By##index,
                              TFR_ELEMENTS(TFR_OPCODES)
#undef TFR_OPCODES
#define TFR_OPCODES(name, format) k##name,
                                  TFR_OTHER_INSTRUCTIONS(TFR_OPCODES)
#undef TFR_OPCODES
};

// Which operands an instruction has: R a register, K an index of Code::constants, Jump a distance.
enum class Format : uint8_t {
  kRRR,
  kRRK,
  kRR,
  kRK,
  kRRJump,
  kRKJump,
  kRJump,
  kJump,
  kR,
  // Returns a unless the comparison of b and c holds.
  kReturnUnlessRR,
  kReturnUnlessRK,
  // Returns what the operator makes of b and c.
  kReturnRR,
  kReturnRK,
  kCall,
  // Takes two words. The second says from which register and constant an argument of the call is computed, and where
  // the argument goes.
  kCallRK,
  kCase,
  // Takes two words: a = operators[c](b, y, z), where the second word holds y and z.
  kApply,
  // Takes two words: c says how to read (ElementAccess), and the second word holds y and z.
  kElementAt,
  kOpenRecord,
  kField,
  kMakeRecord,
  kKeep,
  kNone,
};

// The name of an opcode in listings, and what its operands mean.
struct OpcodeInfo {
  const char* name;
  Format format;
};

const OpcodeInfo& InfoOf(Opcode opcode);

inline bool IsCall(Opcode opcode) {
  const Format format = InfoOf(opcode).format;
  return format == Format::kCallRK || (format == Format::kCall && opcode != Opcode::kJoin);
}

// How many words the instruction takes.
inline int SizeOf(Opcode opcode) {
  const Format format = InfoOf(opcode).format;
  return format == Format::kApply || format == Format::kElementAt || format == Format::kCallRK ? 2 : 1;
}

// One word of code, which the encoder writes and the interpreter runs. What a, b and c mean depends on the opcode.
struct Instruction {
  Opcode opcode;
  uint16_t a = 0;
  uint16_t b = 0;
  uint16_t c = 0;

  int16_t distance() const { return static_cast<int16_t>(c); }
  // The operands that the second word of an instruction holds.
  uint16_t y() const { return a; }
  uint16_t z() const { return b; }
};

static_assert(sizeof(Instruction) == 8, "code stays in the first-level cache");

// Operand c of a kElementAt.
struct ElementAccess {
  // An element has 1 << log_size bytes.
  uint8_t log_size = 0;
  // The indices are int64 rather than int32.
  bool is_int64 = false;
  // There are two indices.
  bool is_matrix = false;
  // Negative indices count from the end.
  bool counts_from_end = false;

  uint16_t Encode() const {
    return static_cast<uint16_t>(log_size | (is_int64 << 2) | (is_matrix << 3) | (counts_from_end << 4));
  }
  static ElementAccess Decode(uint16_t bits) {
    return {static_cast<uint8_t>(bits & 3), (bits & 4) != 0, (bits & 8) != 0, (bits & 16) != 0};
  }
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_INSTRUCTION_H_
