// SPDX-License-Identifier: Apache-2.0
#include "cc/program/firing.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace tensorflow_recursion {
namespace {

// Whether control inputs of a node of this kind would have no effect. Results and exits never wait: a value that
// reaches them goes straight on. A send has to be told when its value is dead, and has no way to learn that a control
// input is. In both cases a node in front waits for the control inputs and hands the value on.
bool IgnoresControls(OpKind kind) { return kind == OpKind::kResult || kind == OpKind::kExit || kind == OpKind::kSend; }

// Moves the node's control inputs to a new node in front of it.
void WaitInFront(FlowGraph* flow, NodeId id) {
  FlowNode& node = flow->nodes[id];
  FlowNode pass(OpKind::kPass, node.region, node.node);
  pass.num_ports = 1;
  pass.inputs.push_back(node.inputs[0]);
  pass.controls = std::move(node.controls);
  node.controls.clear();
  node.inputs[0].source = {NodeId(flow->nodes.size()), 0};
  flow->nodes.Add(std::move(pass));
}

// Gathers the control inputs in new nodes that each wait for as many as can be counted.
void SplitControls(FlowGraph* flow, NodeId id) {
  const std::vector<Source> all = std::move(flow->nodes[id].controls);
  std::vector<Source> gathered;
  for (size_t begin = 0; begin < all.size(); begin += kMaxInputs) {
    FlowNode pass(OpKind::kPass, flow->nodes[id].region, flow->nodes[id].node);
    const size_t end = std::min(begin + kMaxInputs, all.size());
    pass.controls.assign(all.begin() + static_cast<std::ptrdiff_t>(begin),
                         all.begin() + static_cast<std::ptrdiff_t>(end));
    gathered.push_back({flow->nodes.Add(std::move(pass)), Source::kWholeNode});
  }
  flow->nodes[id].controls = std::move(gathered);
}

}  // namespace

size_t NumTokens(const FlowNode& node) {
  const auto inputs =
      std::count_if(node.inputs.begin(), node.inputs.end(), [](const Input& input) { return input.is_token(); });
  return node.controls.size() + (node.kind == OpKind::kMerge ? 1 : static_cast<size_t>(inputs));
}

bool WaitsForOne(const FlowNode& node) {
  switch (node.kind) {
    case OpKind::kScalar:
    case OpKind::kPiece:
    case OpKind::kPass:
    case OpKind::kSwitch:
    case OpKind::kBranch:
    case OpKind::kSwitchN:
    case OpKind::kRetval:
    case OpKind::kRetain:
    case OpKind::kRecall:
    case OpKind::kKernel:
      return NumTokens(node) <= 1;
    default:
      return false;
  }
}

bool IsCounted(const FlowNode& node) {
  return Fires(node.kind) && (!WaitsForOne(node) || node.kind == OpKind::kBranch);
}

EdgeKind EdgeKindInto(const FlowNode& node) {
  if (WaitsForOne(node)) return EdgeKind::kOnly;
  switch (node.kind) {
    case OpKind::kMerge:
      return EdgeKind::kMerge;
    case OpKind::kCallSite:
      return EdgeKind::kCallArgument;
    case OpKind::kGate:
      return EdgeKind::kGate;
    case OpKind::kResult:
      return EdgeKind::kResult;
    case OpKind::kExit:
      return EdgeKind::kExit;
    default:
      return EdgeKind::kData;
  }
}

void SpecializeNodes(FlowGraph* flow) {
  for (NodeId id : flow->nodes.ids()) {
    FlowNode& node = flow->nodes[id];
    if (node.kind == OpKind::kSwitch && node.controls.empty()) node.kind = OpKind::kGate;
    if (node.controls.size() + node.inputs.size() > kMaxInputs) SplitControls(flow, id);
    if (IgnoresControls(flow->nodes[id].kind) && !flow->nodes[id].controls.empty()) WaitInFront(flow, id);
  }
}

}  // namespace tensorflow_recursion
