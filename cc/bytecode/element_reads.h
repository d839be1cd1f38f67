// Finds where graphs read one element of a vector or matrix.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_ELEMENT_READS_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_ELEMENT_READS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "cc/bytecode/instruction.h"

namespace tensorflow_recursion {

// An index is a number that the graph computes, or one that is known. For example, `x[-1]` has its index in a constant
// vector of bounds. The bits of such a number are in `known`.
struct ElementIndex {
  Input input;
  std::optional<uint64_t> known;
};

// One read: `array` is the vector or matrix, and `access` says how its elements are read.
struct ElementRead {
  Input array;
  // One for each dimension.
  std::vector<ElementIndex> indices;
  ElementAccess access;
};

// All reads of single elements in a flow graph, as FindElementReads finds them.
struct ElementReads {
  // `tf.gather(x, i)` is a GatherV2; `x[i]` and `x[i, j]` are StridedSlices whose first bounds are packed of numbers,
  // or constant.
  std::map<NodeId, ElementRead> reads;
  // The nodes that only pack such bounds: Packs, or for one number ExpandDims. In compiled code they are no operators
  // of their own.
  std::set<NodeId> packs;
};

ElementReads FindElementReads(const FlowGraph& flow);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_ELEMENT_READS_H_
