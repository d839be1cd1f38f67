// What the functions that build a flow graph share while they build it.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_BUILDER_H_
#define TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_BUILDER_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "cc/analysis/node_facts.h"
#include "cc/base/ids.h"
#include "cc/values/device_memory.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// The largest index of an argument or an output.
constexpr int64_t kMaxIndex = 0xffff;

// The graph, the flow graph that is made of it, and which flow nodes have been made for what. BuildFlowGraph makes one.
struct FlowBuilder {
  FlowBuilder(const tensorflow::Graph& graph, const DeviceMemory& memory, FlowGraph* flow)
      : graph(graph),
        memory(memory),
        flow(flow),
        has_references(AnyReadsReference(graph)),
        node_of(graph.num_node_ids()) {}

  const GraphRegions& regions() const { return flow->regions; }
  // The flow node of a graph's node; kNone while it has none, and for what only renames a value.
  NodeId NodeOf(const tensorflow::Node* node) const { return node_of[node->id()]; }
  // Adds a flow node that stands for `node`.
  NodeId Add(const tensorflow::Node* node, FlowNode flow_node) {
    return node_of[node->id()] = flow->nodes.Add(std::move(flow_node));
  }

  const tensorflow::Graph& graph;
  const DeviceMemory& memory;
  FlowGraph* const flow;
  // Some node reads a TF1 variable by reference, so that a value may lie in the memory of the variable.
  const bool has_references;
  // By the id of the graph's node.
  std::vector<NodeId> node_of;
  // What holds a constant: its value, and the flow node that sends it as a token, if anybody waits for one.
  std::map<const tensorflow::Node*, ConstantId> constants;
  std::map<const tensorflow::Node*, NodeId> constant_tokens;
  // The one kBranch that all switches of a region on one predicate share.
  std::map<std::pair<RegionId, Source>, NodeId> branches;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_ANALYSIS_FLOW_BUILDER_H_
