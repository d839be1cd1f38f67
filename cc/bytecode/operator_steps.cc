// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/operator_steps.h"

#include <map>
#include <utility>

#include "absl/strings/match.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DataType;

// The name that one of TensorFlow's operators has in cc/values/scalar_operators.h.
std::string OperatorName(const std::string& op, DataType dtype) {
  if (op == "AddV2") return "Add";
  if (op == "Mod") return "TruncateMod";
  if (op == "Div") return tensorflow::DataTypeIsInteger(dtype) ? "TruncateDiv" : op;
  return op;
}

const std::map<std::pair<std::string, DataType>, BinaryInstructions>& Table() {
  static const auto* table = new std::map<std::pair<std::string, DataType>, BinaryInstructions>{
#define TFR_ENTRY(name, type, T) \
  {{#name, tensorflow::DataTypeToEnum<T>::value}, {Opcode::k##name##type, Opcode::k##name##type##K}},
      TFR_ARITHMETIC(TFR_ENTRY) TFR_COMPARISONS(TFR_ENTRY)
#undef TFR_ENTRY
  };
  return *table;
}

// The comparison that holds of (y, x) when `op` holds of (x, y).
std::string Mirrored(const std::string& op) {
  static const auto* mirrored = new std::map<std::string, std::string>{
      {"Less", "Greater"}, {"LessEqual", "GreaterEqual"}, {"Greater", "Less"}, {"GreaterEqual", "LessEqual"}};
  const auto position = mirrored->find(op);
  return position == mirrored->end() ? "" : position->second;
}

bool IsCommutative(const std::string& op) {
  for (const char* name :
       {"Add", "Mul", "Minimum", "Maximum", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Equal", "NotEqual"}) {
    if (op == name) return true;
  }
  return false;
}

bool MayBeSpecial(const std::string& op, DataType dtype) {
  const bool divides = absl::EndsWith(op, "Div") || absl::EndsWith(op, "Mod");
  const bool chooses = op == "Minimum" || op == "Maximum";
  return tensorflow::DataTypeIsFloating(dtype) ? chooses : divides;
}

}  // namespace

std::optional<BinaryInstructions> FindBinaryInstructions(const std::string& op, DataType dtype) {
  const std::string name = OperatorName(op, dtype);
  const auto position = Table().find({name, dtype});
  if (position == Table().end()) return std::nullopt;
  BinaryInstructions found = position->second;
  found.is_commutative = IsCommutative(name);
  found.may_be_special = MayBeSpecial(name, dtype);
  const auto mirrored = Table().find({Mirrored(name), dtype});
  if (mirrored != Table().end()) found.swapped = mirrored->second.with_constant;
  return found;
}

}  // namespace tensorflow_recursion
