// What the functions that lay a flow graph out as tables share while they do.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_PROGRAM_LAYOUT_H_
#define TENSORFLOW_RECURSION_CC_PROGRAM_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "cc/analysis/flow_graph.h"
#include "cc/base/ids.h"
#include "cc/program/program.h"

namespace tensorflow_recursion {

// The constant as operators read it.
inline Value ValueOfConstant(const ConstantTensor& constant) {
  return constant.is_number() ? ScalarFromTensor(constant.tensor) : Value::Constant(&constant.tensor);
}

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
  IdVector<NodeId, OpId> op_of;                      // in its region
  IdVector<RegionId, std::vector<NodeId>> nodes_of;  // the reverse, by operator
};

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_PROGRAM_LAYOUT_H_
