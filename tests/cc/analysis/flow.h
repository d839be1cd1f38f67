// Builds flow graphs from small static graphs, and finds their nodes by name.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_TESTS_CC_ANALYSIS_FLOW_H_
#define TENSORFLOW_RECURSION_TESTS_CC_ANALYSIS_FLOW_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "tests/cc/analysis/static_graphs.h"

namespace tensorflow_recursion {

// A flow graph and the graph it points into.
class BuiltFlow {
 public:
  explicit BuiltFlow(const StaticGraph& graph) {
    status = Construct(graph.graph(), &graph_);
    GraphRegions regions;
    if (status.ok()) status = regions.Build(*graph_);
    if (status.ok()) status = BuildFlowGraph(*graph_, std::move(regions), DeviceMemory(), &flow);
  }

  // The first flow node of this kind that was made for the graph's node `name`.
  NodeId Find(const std::string& name, OpKind kind) const {
    for (NodeId id : flow.nodes.ids()) {
      const FlowNode& node = flow.nodes[id];
      if (node.kind == kind && node.node != nullptr && node.node->name() == name) return id;
    }
    ADD_FAILURE() << "no flow node for " << name;
    return kNone;
  }
  NodeId Kernel(const std::string& name) const { return Find(name, OpKind::kKernel); }
  const FlowNode& operator[](NodeId id) const { return flow.nodes[id]; }

  std::vector<NodeId> Order() const {
    std::vector<NodeId> order;
    EXPECT_TRUE(SortNodes(flow, &order).ok());
    return order;
  }

  absl::Status status;
  FlowGraph flow;

 private:
  std::unique_ptr<tensorflow::Graph> graph_;
};

// y = Merge(f, t), where f and t are kernels on the false and the true side of a branch on `p`; all read `x`.
inline void AddConditional(StaticGraph* graph, const std::string& p, const std::string& x) {
  graph->Op("switch", "Switch", {x, p}).Kernel("f", {"switch"}).Kernel("t", {"switch:1"});
  Merge(graph, "y", {"f", "t"});
}

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_TESTS_CC_ANALYSIS_FLOW_H_
