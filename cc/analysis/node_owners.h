// Says for each node of a transformed graph whose body it is part of.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_NODE_OWNERS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_NODE_OWNERS_H_

#include <string>
#include <vector>

#include "cc/analysis/structural_nodes.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Makes `to` part of the body that `from` says it is part of, if `from` says so (kBodyAttr).
void CopyOwner(const tensorflow::NodeDef& from, tensorflow::NodeDef* to);

// Whether the node says that it is part of a function's body. After SpreadCalls (cc/passes/spread_calls.h) all nodes of
// bodies do, but for the sends and receives that partitioning adds.
bool IsMarkedAsPartOfBody(const tensorflow::Node& node);

// The owners of a graph's nodes. They are read from the attribute that the transformation gives every node (kBodyAttr).
// A node without it was added by a stock optimizer or by partitioning, and has the owner of those that it is connected
// with.
//
// The attribute is needed in a partition: there a body may be in pieces that its FrameStart is not connected with, and
// a receive has no input that would tell what it is part of.
class NodeOwners {
 public:
  void Find(const tensorflow::Graph& graph, const StructuralNodes& structural);

  // False if no node has the attribute, as in a graph that an earlier version has transformed.
  bool are_known() const { return !owners_.empty(); }

  // The function whose body the node is part of, empty for the main graph. To be called only if owners are known.
  const std::string& Of(const tensorflow::Node* node) const { return owners_[node->id()]; }

 private:
  // By the id of the graph's node.
  std::vector<std::string> owners_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_NODE_OWNERS_H_
