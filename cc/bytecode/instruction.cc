// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/instruction.h"

namespace tensorflow_recursion {

const OpcodeInfo& InfoOf(Opcode opcode) {
  static constexpr OpcodeInfo kInfos[] = {
#define TFR_INFO(name, type, T) {#name #type, Format::kRRR}, {#name #type "K", Format::kRRK},
      TFR_ARITHMETIC(TFR_INFO) TFR_COMPARISONS(TFR_INFO)
#undef TFR_INFO
#define TFR_INFO(name, type, T) {"Unless" #name #type, Format::kRRJump}, {"Unless" #name #type "K", Format::kRKJump},
          TFR_COMPARISONS(TFR_INFO)
#undef TFR_INFO
#define TFR_INFO(name, type, T) \
  {"ReturnUnless" #name #type, Format::kReturnUnlessRR}, {"ReturnUnless" #name #type "K", Format::kReturnUnlessRK},
              TFR_COMPARISONS(TFR_INFO)
#undef TFR_INFO
#define TFR_INFO(name, type, T) \
  {"Return" #name #type, Format::kReturnRR}, {"Return" #name #type "K", Format::kReturnRK},
                  TFR_RETURNED(TFR_INFO)
#undef TFR_INFO
#define TFR_INFO(name, type, T) {"Call" #name #type "K", Format::kCallRK},
                      TFR_ARGUMENTS(TFR_INFO)
#undef TFR_INFO
#define TFR_INFO(name, type, T) {"CallIf" #name #type, Format::kCall}, {"CallIf" #name #type "K", Format::kCall},
                          TFR_COMPARISONS(TFR_INFO)
#undef TFR_INFO
#define TFR_INFO(argument, name, type, T)                      \
  {"Call" #argument #type "KIf" #name #type, Format::kCallRK}, \
      {"Call" #argument #type "KIf" #name #type "K", Format::kCallRK},
                              TFR_COMPARED_CALLS(TFR_INFO)
#undef TFR_INFO
#define TFR_INFO(size, T, index, Index) {"Element" #size "By" #index, Format::kRRR},
                                  TFR_ELEMENTS(TFR_INFO)
#undef TFR_INFO
#define TFR_INFO(name, format) {#name, Format::format},
                                      TFR_OTHER_INSTRUCTIONS(TFR_INFO)
#undef TFR_INFO
  };
  return kInfos[static_cast<int>(opcode)];
}

}  // namespace tensorflow_recursion
