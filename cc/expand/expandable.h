// Which nodes can become plain operators: control flow and ordinary calls, with the functions that they hold.
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
  kNone,         // an ordinary operator, or one that must stay a kernel
  kControlFlow,  // If, Case, While: switches, merges and loops around its functions' bodies
  kInline,       // a call of an ordinary function: its body
};

// What expanding `node` would bring in. A node whose functions are missing, take attributes, or do not
// fit its inputs and outputs is not expandable: its kernel is the one to complain.
struct Expandable {
  Expansion kind = Expansion::kNone;
  std::vector<std::string> functions;
};
Expandable FindExpandable(const tensorflow::NodeDef& node, const tensorflow::FunctionLibraryDefinition& library);

// The functions of `functions` that hold an Invoke, in their own graphs or in functions that can be expanded into them.
std::unordered_set<std::string> FunctionsWithInvoke(const tensorflow::FunctionDefLibrary& functions,
                                                    const tensorflow::FunctionLibraryDefinition& library);

// Whether TensorFlow's lowering pass will expand `node`; it does so to what is marked, and checks nothing.
bool IsMarkedForLowering(const tensorflow::NodeDef& node);

// Names a function on a cycle of marked expansions that starts at `function`; empty when all of them end.
std::string FindEndlessLowering(const std::string& function, const tensorflow::FunctionLibraryDefinition& library);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_EXPANDABLE_H_
