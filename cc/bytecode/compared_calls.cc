// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/compared_calls.h"

#include <map>
#include <utility>

#include "cc/bytecode/instruction.h"

namespace tensorflow_recursion {
namespace {

using Pair = std::pair<Opcode, Opcode>;

// The instruction that replaces a call, by the call and the first instruction of its callee.
const std::map<Pair, Opcode>& ComparedCalls() {
  static const auto* calls = new std::map<Pair, Opcode>{
#define TFR_CALL(name, type, T)                                                      \
  {{Opcode::kCall, Opcode::kReturnUnless##name##type}, Opcode::kCallIf##name##type}, \
      {{Opcode::kCall, Opcode::kReturnUnless##name##type##K}, Opcode::kCallIf##name##type##K},
      TFR_COMPARISONS(TFR_CALL)
#undef TFR_CALL
#define TFR_CALL(argument, name, type, T)                                        \
  {{Opcode::kCall##argument##type##K, Opcode::kReturnUnless##name##type},        \
   Opcode::kCall##argument##type##KIf##name##type},                              \
      {{Opcode::kCall##argument##type##K, Opcode::kReturnUnless##name##type##K}, \
       Opcode::kCall##argument##type##KIf##name##type##K},
          TFR_COMPARED_CALLS(TFR_CALL)
#undef TFR_CALL
  };
  return *calls;
}

}  // namespace

void CompareBeforeCalls(Code* code) {
  for (const CodeFunction& function : code->functions) {
    for (uint32_t at = function.begin; at < function.end; at += SizeOf(code->instructions[at].opcode)) {
      Instruction& call = code->instructions[at];
      if (!IsCall(call.opcode)) continue;
      const Instruction& first = code->instructions[code->functions[call.b].begin];
      const auto position = ComparedCalls().find({call.opcode, first.opcode});
      if (position != ComparedCalls().end()) call.opcode = position->second;
    }
  }
}

}  // namespace tensorflow_recursion
