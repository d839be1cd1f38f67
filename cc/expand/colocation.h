// Keeps the colocation constraints of nodes right that are renamed or whose partners go.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_COLOCATION_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_COLOCATION_H_

#include <functional>
#include <string>
#include <unordered_map>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// Takes the constraint off `node` to be beside nodes whose names `is_left` says true of.
void PartFrom(const std::function<bool(const std::string& name)>& is_left, tensorflow::Node* node);

// Which nodes of a graph are to be beside each other: those of which one names the other, directly or not.
class ColocationGroups {
 public:
  explicit ColocationGroups(const tensorflow::Graph& graph);

  // The name of the node's group: the same for all of its nodes, and for no other one.
  std::string Of(const tensorflow::Node& node) const { return RootOf(node.name()); }

 private:
  std::string RootOf(const std::string& node) const;

  std::unordered_map<std::string, std::string> parents_;  // of nodes that are not their group's first
};

// Gives the nodes that `node` is to be beside their new names. `renamed` has new names by old ones.
void RenameColocation(const std::unordered_map<std::string, std::string>& renamed, tensorflow::NodeDef* node);

// Removes what refers to nodes that are not in the graph: calls are gone, and nodes that were only needed to hold
// others in place. Placement is done by then, so nothing is lost.
void DropDanglingColocation(tensorflow::GraphDef* graph);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_COLOCATION_H_
