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

struct CompiledFunctions {
  std::unique_ptr<const Code> code;         // nullptr if there are none
  std::map<RegionId, int> functions;        // by the region of the body: its number in the code
  std::map<RegionId, std::string> reasons;  // of those that are not compiled for what is in them
};

// `flow` is as DropSuperfluousWaits() leaves it. A function that can't be compiled is left out, with all that call it:
// it runs as a graph.
CompiledFunctions CompileFunctions(const FlowGraph& flow);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_COMPILER_H_
