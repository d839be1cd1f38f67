// Finds the nodes of a main graph that its fetches need, before any call is expanded.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_PRUNING_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_PRUNING_H_

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "cc/expand/call_program.h"
#include "tensorflow/core/framework/graph.pb.h"

namespace tensorflow_recursion {

// Finds nodes of a GraphDef by name, and copies those that some others need. Index() has to be called first. The graph
// must outlive it.
class Pruner {
 public:
  explicit Pruner(const tensorflow::GraphDef& graph) : graph_(graph) {}

  // InvalidArgument if two nodes have one name.
  absl::Status Index();

  bool Has(const std::string& node) const { return index_.count(node) > 0; }
  const tensorflow::NodeDef& Find(const std::string& node) const { return graph_.node(index_.at(node)); }

  // Copies the nodes that `roots` need and all arguments to `*kept`, in the graph's order, and the whole library.
  // InvalidArgument if a node that is needed has an input that is not in the graph.
  absl::Status Keep(const std::map<std::string, Fetch>& roots, tensorflow::GraphDef* kept) const;

 private:
  const tensorflow::GraphDef& graph_;
  std::unordered_map<std::string, int> index_;
};

// Fills in the fetches and feeds of `program`. `fetches` are tensors ("n:0") or nodes ("n"); if there are none, every
// node counts. `feeds` are tensors. InvalidArgument if a fetch is not in the graph. A feed may be missing, because
// nodes that nobody reads may have been pruned.
absl::Status ReadFetches(const tensorflow::GraphDef& graph, const Pruner& pruner,
                         const std::vector<std::string>& fetches, const std::vector<std::string>& feeds,
                         CallProgram* program);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_PRUNING_H_
