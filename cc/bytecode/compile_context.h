// The context in which the functions of a program are compiled.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_COMPILE_CONTEXT_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_COMPILE_CONTEXT_H_

#include <cstdint>
#include <map>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "cc/bytecode/blocks.h"
#include "cc/bytecode/code_builder.h"
#include "cc/bytecode/element_reads.h"

namespace tensorflow_recursion {

// What all functions share while they are compiled. CompileFunctions and FindPieces make one each.
struct CompileContext {
  const FlowGraph& flow;
  const ElementReads& reads;
  Blocks* blocks;
  CodeBuilder* builder;
  Code* code;
  // The nodes of each function and its loops, in the order of SortNodes().
  std::map<RegionId, std::vector<NodeId>> nodes;
  // The number that each function has in the code.
  std::map<RegionId, int> functions;
  // The address of the Array of each constant whose elements are read.
  std::map<ConstantId, uint64_t> arrays;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_COMPILE_CONTEXT_H_
