// Says for every node of a partition graph which region it belongs to: root, function body or loop.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_REGIONS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_REGIONS_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

class GraphRegions {
 public:
  static constexpr int kRoot = 0;
  static constexpr int kNoRegion = -1;  // source, sink, and nodes that exist only against pruning

  struct Region {
    enum class Kind { kRoot, kFunction, kLoop };
    Kind kind = Kind::kRoot;
    std::string name;
    int parent = kNoRegion;  // of a loop
  };

  // Walks the graph from its sources. InvalidArgument if a node belongs to two regions or to none.
  absl::Status Build(const tensorflow::Graph& graph);

  int region(const tensorflow::Node* node) const { return region_of_[node->id()]; }
  // The region that the node's outputs are delivered in: differs for Enter and Exit.
  int output_region(const tensorflow::Node* node) const;
  // Whether the node is part of a function's body, loops in it included.
  bool IsInFunction(const tensorflow::Node* node) const;
  bool IsFunctionPart(int region) const;
  const std::vector<Region>& regions() const { return regions_; }
  // The function whose body the node is part of; empty for the main graph.
  const std::string& FunctionOf(const tensorflow::Node* node) const;
  // Whether the node exists against pruning only.
  bool IsStructural(const tensorflow::Node* node) const { return structural_[node->id()]; }
  // The region of a function's body, or kNoRegion.
  int FindFunction(const std::string& name) const;
  // The loop that an Enter node opens.
  int LoopOf(const tensorflow::Node* enter) const;

  // Whether the edge carries something at run time (else it exists for pruning or bookkeeping only).
  bool IsReal(const tensorflow::Edge* edge) const;

 private:
  int AddRegion(Region region);
  int FunctionRegion(const std::string& name);
  void MarkStructural(const tensorflow::Graph& graph);
  void FindOwners(const tensorflow::Graph& graph);
  int RegionOfSource(const tensorflow::Node* node);
  int FunctionRegionOf(int region) const;
  absl::Status FindSources(const tensorflow::Graph& graph, std::vector<const tensorflow::Node*>* ready);
  absl::Status Walk(std::vector<const tensorflow::Node*> ready);
  absl::Status Enter(const tensorflow::Node* node);
  absl::Status Check(const tensorflow::Graph& graph) const;

  std::vector<Region> regions_;
  std::vector<int> region_of_;
  std::vector<bool> structural_;
  std::vector<std::string> owners_;  // of a partition: the function each node is part of, by node id
  std::map<std::string, int> functions_;
  std::map<std::pair<int, std::string>, int> loops_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_REGIONS_H_
