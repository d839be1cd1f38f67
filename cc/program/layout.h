// Holds what the functions share that lay a flow graph out as tables.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_LAYOUT_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "cc/base/ids.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// The value that operators read of a constant.
inline Value ValueOfConstant(const ConstantTensor& constant) {
  return constant.is_number() ? ScalarFromTensor(constant.tensor) : Value::Constant(&constant.tensor);
}

// A flow graph, the program that it becomes, and which node becomes which operator.
struct Layout {
  Layout(const FlowGraph& flow, Program* program)
      : flow(flow), program(program), op_of(flow.nodes.size()), nodes_of(flow.regions.regions().size()) {}

  Region& RegionOf(RegionId region) { return program->regions[region]; }
  const Region& RegionOf(RegionId region) const { return program->regions[region]; }
  // The operator that the node became.
  Op& OpOf(NodeId node) { return RegionOf(flow.nodes[node].region).ops[op_of[node]]; }
  const Op& OpOf(NodeId node) const { return RegionOf(flow.nodes[node].region).ops[op_of[node]]; }

  const FlowGraph& flow;
  Program* const program;
  // The operator that each node became, in its region; and the node of each operator of a region.
  IdVector<NodeId, OpId> op_of;
  IdVector<RegionId, std::vector<NodeId>> nodes_of;
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_LAYOUT_H_
