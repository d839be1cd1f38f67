// Keeps colocation constraints right when nodes are renamed or removed.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_COLOCATION_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_COLOCATION_H_

#include <cstddef>
#include <functional>
#include <string>
#include <unordered_map>

#include "cc/base/disjoint_sets.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Frees `node` from having to be beside the nodes whose names `is_left` accepts.
void PartFrom(const std::function<bool(const std::string& name)>& is_left, tensorflow::Node* node);

// Says which nodes of a graph have to be on one device: those of which one names the other, directly or not.
class ColocationGroups {
 public:
  explicit ColocationGroups(const tensorflow::Graph& graph);

  // The number of the node's group, which all nodes of the group have in common with one another, and with no others.
  size_t Of(const tensorflow::Node& node) const { return groups_.Root(node.id()); }

 private:
  // The nodes by their ids, and behind them the names that no node of the graph has.
  DisjointSets groups_;
};

// Renames the nodes that `node` has to be beside. `renamed` has new names by old ones.
void RenameColocation(const std::unordered_map<std::string, std::string>& renamed, tensorflow::NodeDef* node);

// Removes constraints that refer to nodes which are no longer in the graph, such as calls. Placement is done by then,
// so nothing is lost.
void DropDanglingColocation(tensorflow::GraphDef* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_COLOCATION_H_
