// Finds nodes of gradients that have nothing to compute where all values are numbers.
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
// The shape of a number is an empty vector, and so are the axes. Nothing has to be computed of such vectors, and a node
// that reads a number and such a vector returns the number.
struct NeutralNode {
  // The input that is a number, if there is one, and the inputs that are shapes or axes.
  std::optional<int> number;
  std::vector<int> shapes;
  // The outputs are shapes or axes. Otherwise the output is the number.
  bool gives_shapes = false;

  // Returns nullopt if the node is no such node.
  static std::optional<NeutralNode> Find(const FlowGraph& flow, const FlowNode& node);
};

// Whether the node makes zeros like a variant. If the variant is a record, its zeros are a record without values.
bool MakesZeroRecord(const FlowGraph& flow, const FlowNode& node);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_BYTECODE_NEUTRAL_NODES_H_
