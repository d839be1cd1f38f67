// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/disassembler.h"

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cc/values/scalar_operators.h"

namespace tensorflow_recursion {
namespace {

std::string Register(int number) { return absl::StrCat("r", number); }

// Writes a constant as a number of the type that is in the instruction's name. A kConstant does not say its type: what
// could be a small whole number is taken for one.
std::string Constant(const Code& code, uint16_t index, absl::string_view instruction) {
  const uint64_t bits = code.constants[index];
  if (absl::StrContains(instruction, "Int32")) return absl::StrCat(FromBits<int32_t>(bits));
  if (absl::StrContains(instruction, "Int64")) return absl::StrCat(FromBits<int64_t>(bits));
  if (absl::StrContains(instruction, "Float")) return absl::StrCat(FromBits<float>(bits));
  if (absl::StrContains(instruction, "Double")) return absl::StrCat(FromBits<double>(bits));
  return bits >> 32 == 0 ? absl::StrCat(FromBits<int32_t>(bits)) : absl::StrFormat("0x%016x", bits);
}

std::string Types(const std::vector<RegisterType>& types) {
  return absl::StrJoin(types, ", ", [](std::string* out, const RegisterType& type) {
    const bool is_known = type.dtype != tensorflow::DT_INVALID;
    absl::StrAppend(out, is_known ? tensorflow::DataTypeString(type.dtype) : "unread", type.is_array ? "[]" : "");
  });
}

std::string Element(const Instruction& instruction, const Instruction& second) {
  const ElementAccess access = ElementAccess::Decode(instruction.c);
  std::string text = absl::StrCat(Register(instruction.a), " = ", Register(instruction.b), "[", Register(second.y()));
  if (access.is_matrix) absl::StrAppend(&text, ", ", Register(second.z()));
  return text + "]";
}

std::string CallText(const Code& code, const Instruction& call) {
  const CodeFunction& callee = code.functions[call.b];
  std::vector<std::string> arguments;
  arguments.reserve(callee.arguments.size());
  for (size_t k = 0; k < callee.arguments.size(); ++k) arguments.push_back(Register(call.c + static_cast<int>(k)));
  return absl::StrCat(Register(call.a), " = ", callee.name, "(", absl::StrJoin(arguments, ", "), ")");
}

// Writes the types of a record's values, as in `{bool, double, variant}`.
std::string RecordText(const Code& code, uint16_t index) {
  const auto add_type = [](std::string* out, tensorflow::DataType dtype) {
    absl::StrAppend(out, tensorflow::DataTypeString(dtype));
  };
  return absl::StrCat("{", absl::StrJoin(code.records[index].type().types, ", ", add_type), "}");
}

std::string RecordOperands(const Code& code, const Instruction& i) {
  const std::string a = Register(i.a);
  switch (InfoOf(i.opcode).format) {
    case Format::kOpenRecord:
      return absl::StrCat(a, " = ", Register(i.b), " of ", RecordText(code, i.c));
    case Format::kField:
      return absl::StrCat(a, " = ", Register(i.b), "[", i.c, "]");
    case Format::kMakeRecord:
      return absl::StrCat(a, " = ", RecordText(code, i.b));
    default:
      return absl::StrCat(a, "[", i.b, "] = ", Register(i.c));
  }
}

std::string Operands(const Code& code, uint32_t position, uint32_t begin) {
  const Instruction& i = code.instructions[position];
  const OpcodeInfo& info = InfoOf(i.opcode);
  std::string a = Register(i.a);
  const std::string b = Register(i.b);
  const std::string c = Register(i.c);
  std::string target = absl::StrCat("-> ", static_cast<int64_t>(position) - begin + i.distance());
  switch (info.format) {
    case Format::kRRR:
      if (i.opcode == Opcode::kMove2) return absl::StrCat(a, ", ", Register(i.a + 1), " = ", b, ", ", c);
      return absl::StrCat(a, " = ", b, ", ", c);
    case Format::kRRK:
      return absl::StrCat(a, " = ", b, ", ", Constant(code, i.c, info.name));
    case Format::kRR:
      return absl::StrCat(a, " = ", b);
    case Format::kRK:
      return absl::StrCat(a, " = ", Constant(code, i.b, info.name));
    case Format::kRRJump:
      return absl::StrCat(a, ", ", b, " ", target);
    case Format::kRKJump:
      return absl::StrCat(a, ", ", Constant(code, i.b, info.name), " ", target);
    case Format::kRJump:
      return absl::StrCat(a, " ", target);
    case Format::kJump:
      return target;
    case Format::kR:
      return a;
    case Format::kReturnUnlessRR:
      return absl::StrCat(a, " unless ", b, ", ", c);
    case Format::kReturnUnlessRK:
      return absl::StrCat(a, " unless ", b, ", ", Constant(code, i.c, info.name));
    case Format::kReturnRR:
      return absl::StrCat(b, ", ", c);
    case Format::kReturnRK:
      return absl::StrCat(b, ", ", Constant(code, i.c, info.name));
    case Format::kCallRK: {
      const Instruction& second = code.instructions[position + 1];
      return absl::StrCat(CallText(code, i), " after ", Register(second.c), " = ", Register(second.y()), ", ",
                          Constant(code, second.z(), info.name));
    }
    case Format::kCall:
      return CallText(code, i);
    case Format::kCase:
      return absl::StrCat(a, " of ", i.b);
    case Format::kApply: {
      const Instruction& second = code.instructions[position + 1];
      return absl::StrCat(a, " = ", code.operator_names[i.c], " ", b, ", ", Register(second.y()), ", ",
                          Register(second.z()));
    }
    case Format::kElementAt:
      return Element(i, code.instructions[position + 1]);
    case Format::kNone:
      return "";
    default:
      return RecordOperands(code, i);
  }
}

}  // namespace

std::string Disassemble(const Code& code, const CodeFunction& function) {
  std::string text =
      absl::StrCat(function.name, "(", Types(function.arguments), ") -> ", Types(function.results), "\n");
  for (uint32_t i = function.begin; i < function.end; i += SizeOf(code.instructions[i].opcode)) {
    const std::string line =
        absl::StrFormat("%5d  %-24s %s", i - function.begin, InfoOf(code.instructions[i].opcode).name,
                        Operands(code, i, function.begin));
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return text;
}

}  // namespace tensorflow_recursion
