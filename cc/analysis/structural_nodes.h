// Finds the nodes that only keep others from being pruned, and take no part in a run.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_STRUCTURAL_NODES_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_STRUCTURAL_NODES_H_

#include <vector>

#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// The structural nodes of a graph: KeepAlives, the Enters and Identities that bring their tokens to Returns, and the
// NoOps that bundle what they wait for. See cc/expand/keep_alives.h for why these are in the graph.
class StructuralNodes {
 public:
  void Find(const tensorflow::Graph& graph);

  bool Contains(const tensorflow::Node* node) const { return is_structural_[node->id()]; }

  // Whether the edge carries something at run time. It does not if one of its ends is structural, or is the source or
  // the sink of the graph.
  bool IsReal(const tensorflow::Edge* edge) const;

 private:
  // By the id of the graph's node.
  std::vector<bool> is_structural_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_STRUCTURAL_NODES_H_
