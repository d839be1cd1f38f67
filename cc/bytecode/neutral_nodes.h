// Nodes of gradients that do nothing where all is numbers: what broadcasting leaves, and zeros of records.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_BYTECODE_NEUTRAL_NODES_H_
#define TENSORFLOW_RECURSION_CC_BYTECODE_NEUTRAL_NODES_H_

#include <optional>
#include <vector>

#include "cc/analysis/flow_graph.h"

namespace tensorflow_recursion {

// The gradient of `x * y` for unknown shapes computes the shapes of both, which axes were broadcast, and sums over
// these:
//
//     Reshape(Sum(dy * y, BroadcastGradientArgs(Shape(x), Shape(y))), Shape(x))
//
// The shape of a number is an empty vector, and so are the axes. Nothing has to be computed of such vectors, and what
// reads one with a number gives the number back.
struct NeutralNode {
  std::optional<int> number;  // the input that is a number, if one is
  std::vector<int> shapes;    // those that are shapes or axes
  bool gives_shapes = false;  // or else the number

  // nullopt if the node is none.
  static std::optional<NeutralNode> Find(const FlowGraph& flow, const FlowNode& node);
};

// Whether the node makes zeros like a variant. Of a record they are a record without values.
bool MakesZeroRecord(const FlowGraph& flow, const FlowNode& node);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_NEUTRAL_NODES_H_
