// Compiles the functions of a flow graph that are made of arithmetic on numbers.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_COMPILER_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_COMPILER_H_

#include <map>
#include <memory>
#include <string>

#include "cc/analysis/flow_graph.h"
#include "cc/bytecode/code.h"

namespace tensorflow_recursion {

// What CompileFunctions makes: the code, and for each function where it is in the code or why it is not there.
struct CompiledFunctions {
  // nullptr if no function is compiled.
  std::unique_ptr<const Code> code;
  // The number in the code of each function, by the region of its body.
  std::map<RegionId, int> functions;
  // Why other functions are not compiled, if it is because of something in them.
  std::map<RegionId, std::string> reasons;
};

// `flow` is as DropSuperfluousWaits() leaves it. A function that can't be compiled is left out, with all that call it:
// it runs as a graph.
CompiledFunctions CompileFunctions(const FlowGraph& flow);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_COMPILER_H_
