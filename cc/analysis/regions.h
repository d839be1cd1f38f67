// Says for every node of a partition graph which region it belongs to: root, function body or loop.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_REGIONS_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_REGIONS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "cc/analysis/node_owners.h"
#include "cc/analysis/structural_nodes.h"
#include "cc/base/ids.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// What a region is: the main graph, the body of a function, or the body of a loop.
enum class RegionKind : uint8_t { kRoot, kFunction, kLoop };

// The regions of a graph, which are its parts whose operators share a frame, and the region of each node.
class GraphRegions {
 public:
  static constexpr RegionId kRoot{0};

  // One region, which Build finds.
  struct Region {
    RegionKind kind = RegionKind::kRoot;
    // The name of the function, or the attribute `frame_name` of the loop; empty for the root.
    std::string name;
    // The region that the loop is in; kNone if the region is not a loop's.
    RegionId parent;
  };

  // Finds the regions by walking the graph from its sources. InvalidArgument if a node belongs to two regions or to
  // none.
  absl::Status Build(const tensorflow::Graph& graph);

  // The region that the node is part of; kNone for source, sink, and structural nodes.
  RegionId region(const tensorflow::Node* node) const { return region_of_[node->id()]; }
  // The region that the node's outputs go to, which is another one for Enter and Exit.
  RegionId output_region(const tensorflow::Node* node) const;
  // Whether the node, or the region, is part of a function's body, loops in it included.
  bool IsInFunction(const tensorflow::Node* node) const;
  bool IsFunctionPart(RegionId region) const;
  // The region of the body that a region is part of, loops in it included; the root for regions of the main graph.
  RegionId FunctionRegionOf(RegionId region) const;
  const IdVector<RegionId, Region>& regions() const { return regions_; }
  // The function whose body the node is part of; empty for the main graph.
  const std::string& FunctionOf(const tensorflow::Node* node) const;
  // Whether the node only keeps others from being pruned.
  bool IsStructural(const tensorflow::Node* node) const { return structural_.Contains(node); }
  // The region of a function's body, or kNone.
  RegionId FindFunction(const std::string& name) const;
  // The region of the loop that an Enter node opens, or kNone.
  RegionId LoopOf(const tensorflow::Node* enter) const;

  // Whether the edge carries something at run time. Others exist for pruning or bookkeeping only.
  bool IsReal(const tensorflow::Edge* edge) const { return structural_.IsReal(edge); }

 private:
  RegionId FunctionRegion(const std::string& name);
  RegionId RegionOfSource(const tensorflow::Node* node);
  absl::Status FindSources(const tensorflow::Graph& graph, std::vector<const tensorflow::Node*>* ready);
  absl::Status Walk(std::vector<const tensorflow::Node*> ready);
  absl::Status Enter(const tensorflow::Node* node);
  absl::Status Check(const tensorflow::Graph& graph) const;

  IdVector<RegionId, Region> regions_;
  // By the id of the graph's node.
  std::vector<RegionId> region_of_;
  StructuralNodes structural_;
  NodeOwners owners_;
  std::map<std::string, RegionId> functions_;
  // By the region around the loop, and the loop's name.
  std::map<std::pair<RegionId, std::string>, RegionId> loops_;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_REGIONS_H_
