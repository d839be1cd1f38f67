// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/function_attributes.h"

namespace tensorflow_recursion {

std::vector<tensorflow::NameAttrList> FunctionsInAttributes(const tensorflow::NodeDef& node) {
  std::vector<tensorflow::NameAttrList> functions;
  for (const auto& [name, value] : node.attr()) {
    if (value.has_func()) functions.push_back(value.func());
    functions.insert(functions.end(), value.list().func().begin(), value.list().func().end());
  }
  return functions;
}

}  // namespace tensorflow_recursion
