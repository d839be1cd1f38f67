// Reads of one element of a vector or matrix, as graphs spell them.
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

// A number that the graph computes, or one that is known: `x[-1]` has its index in a constant vector of bounds.
struct ElementIndex {
  Input input;
  std::optional<uint64_t> known;  // as bits
};

struct ElementRead {
  Input array;
  std::vector<ElementIndex> indices;  // one for each dimension
  ElementAccess access;
};

struct ElementReads {
  // `tf.gather(x, i)`, a GatherV2, and `x[i]` or `x[i, j]`, a StridedSlice whose first bounds are packed of numbers, or
  // constant.
  std::map<NodeId, ElementRead> reads;
  // The Packs (or, of one number, ExpandDims) of such bounds that nothing else reads: in compiled code they are no
  // operators of their own.
  std::set<NodeId> packs;
};

ElementReads FindElementReads(const FlowGraph& flow);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_ELEMENT_READS_H_
