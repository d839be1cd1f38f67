// Finds the nodes that can become plain operators: control flow and ordinary calls, with the functions that they hold.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_EXPANDABLE_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_EXPANDABLE_H_

#include <string>
#include <unordered_set>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace tensorflow_recursion {

// How a node that holds functions can become plain operators.
enum class Expansion {
  // It cannot: it is an ordinary operator, or must stay a kernel.
  kNone,
  // An If, Case or While becomes switches, merges and loops around its functions' bodies.
  kControlFlow,
  // A call of an ordinary function becomes its body.
  kInline,
};

// How a node can be expanded, and the functions that this would bring in. A node whose functions are missing, take
// attributes, or do not fit its inputs and outputs is not expandable: its kernel reports the error.
struct Expandable {
  Expansion kind = Expansion::kNone;
  std::vector<std::string> functions;
};
Expandable FindExpandable(const tensorflow::NodeDef& node, const tensorflow::FunctionLibraryDefinition& library);

// The functions of `functions` that hold an Invoke, in their own graphs or in functions that can be expanded into them.
std::unordered_set<std::string> FunctionsWithInvoke(const tensorflow::FunctionDefLibrary& functions,
                                                    const tensorflow::FunctionLibraryDefinition& library);

// Whether TensorFlow's lowering pass will expand `node`. It expands all nodes that are marked, without any checks.
bool IsMarkedForLowering(const tensorflow::NodeDef& node);

// Names a function on a cycle of marked expansions that starts at `function`; empty when all of them end.
std::string FindEndlessLowering(const std::string& function, const tensorflow::FunctionLibraryDefinition& library);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_EXPANDABLE_H_
