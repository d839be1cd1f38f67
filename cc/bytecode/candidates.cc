// SPDX-License-Identifier: Apache-2.0
#include "cc/bytecode/candidates.h"

#include <algorithm>
#include <utility>

#include "cc/bytecode/loop_variables.h"
#include "cc/bytecode/neutral_nodes.h"
#include "cc/values/record_layout.h"
#include "cc/values/scalar_ops.h"
#include "cc/values/value.h"

namespace tensorflow_recursion {

using tensorflow::Tensor;

RegionId FunctionOf(const FlowGraph& flow, RegionId region) {
  while (region != kNone && flow.functions.count(region) == 0) region = flow.regions.regions()[region].parent;
  return region;
}

std::set<RegionId> Candidates::Find() {
  for (const auto& [region, function] : flow_.functions) {
    if (region != kNone && !function.results.empty()) functions_.insert(region);
  }
  for (const FlowNode& node : flow_.nodes) {
    for (const Input& input : node.inputs) {
      const bool is_position = !input.is_constant() && input.source.port == 1;
      if (is_position && flow_.nodes[input.source.node].kind == OpKind::kMerge) {
        read_positions_.insert(input.source.node);
      }
    }
  }
  for (NodeId id : order_) {
    const RegionId function = FunctionOf(flow_, flow_.nodes[id].region);
    if (flow_.nodes[id].is_removed || functions_.count(function) == 0) continue;
    if (IsFit(id) && blocks_.Place(id) && IsWhereItShould(id)) continue;
    functions_.erase(function);
    misfits_[function] = flow_.nodes[id].node;
  }
  while (true) {
    DropCallersOfOthers();
    if (functions_.empty()) return functions_;
    types_.Find(WithLoops());
    if (types_.conflicts().empty()) return functions_;
    for (RegionId region : types_.conflicts()) functions_.erase(FunctionOf(flow_, region));
  }
}

std::set<RegionId> Candidates::Restrict(std::set<RegionId> functions) {
  functions_ = std::move(functions);
  DropCallersOfOthers();
  return functions_;
}

// Whether the node can be compiled by itself. That values are on the host need not be checked: otherwise the analysis
// would have made no scalar operators of what computes with them.
bool Candidates::IsFit(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  if (node.takes_dead || node.may_be_dead || node.is_partial) return false;
  if (!HasFitConstants(id)) return false;
  switch (node.kind) {
    case OpKind::kScalar: {
      if (reads_.reads.count(id) > 0) return true;
      const KernelNode& kernel = flow_.kernels[node.index];
      return kernel.op != "GatherV2" &&
             FindScalarOperator(kernel.op, kernel.inputs, kernel.outputs).on_numbers != nullptr;
    }
    case OpKind::kKernel:
      return reads_.reads.count(id) > 0 || reads_.packs.count(id) > 0 || MakesZeroRecord(flow_, node) ||
             NeutralNode::Find(flow_, node).has_value();
    case OpKind::kPass:
      return static_cast<int>(node.inputs.size()) == node.num_ports;
    case OpKind::kMerge:
      return read_positions_.count(id) == 0;
    case OpKind::kCallSite:
      return IsFitSite(node);
    case OpKind::kRetain:
    case OpKind::kRecall:
      return IsFitRecord(node);
    case OpKind::kLoopStart:
    case OpKind::kLoopNext:
      return IsFitLoop(node);
    case OpKind::kSwitch:
    case OpKind::kSwitchN:
    case OpKind::kBranch:
    case OpKind::kUnion:
    case OpKind::kEntry:
    case OpKind::kFrameStart:
    case OpKind::kResult:
    case OpKind::kExit:
      return true;
    default:
      return false;
  }
}

bool Candidates::IsFitRecord(const FlowNode& node) const {
  const tensorflow::DataTypeVector& types = flow_.records[node.index].types;
  return std::all_of(types.begin(), types.end(), RecordLayout::MayHold);
}

bool Candidates::IsNumber(const Input& input) const { return flow_.constants[input.constant].is_number(); }

// Whether the node's constants are on the host, and are numbers where it computes with them, and arrays where it reads
// elements of them. RegisterTypes looks at what is no constant.
bool Candidates::HasFitConstants(NodeId id) const {
  const FlowNode& node = flow_.nodes[id];
  for (const Input& input : node.inputs) {
    if (input.is_constant() && !flow_.constants[input.constant].is_on_host) return false;
  }
  const auto is_number = [&](const Input& input) { return !input.is_constant() || IsNumber(input); };
  if (const auto read = reads_.reads.find(id); read != reads_.reads.end()) {
    const ElementRead& element = read->second;
    if (element.array.is_constant() && IsNumber(element.array)) return false;
    return std::all_of(element.indices.begin(), element.indices.end(),
                       [&](const ElementIndex& index) { return index.known || is_number(index.input); });
  }
  if (node.kind == OpKind::kSwitchN) return is_number(node.inputs[1]);
  if (node.kind == OpKind::kRetain) {
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Input& input) {
      return is_number(input) || flow_.constants[input.constant].tensor.dtype() == tensorflow::DT_VARIANT;
    });
  }
  if (const auto neutral = NeutralNode::Find(flow_, node); neutral && neutral->number) {
    return is_number(node.inputs[static_cast<size_t>(*neutral->number)]);
  }
  const bool computes = node.kind == OpKind::kScalar || node.kind == OpKind::kBranch || reads_.packs.count(id) > 0;
  return !computes || std::all_of(node.inputs.begin(), node.inputs.end(), is_number);
}

bool Candidates::IsFitLoop(const FlowNode& node) const {
  const FlowLoop* const loop = node.kind == OpKind::kLoopStart ? &flow_.loops[node.index] : flow_.FindLoop(node.region);
  return IsSimpleLoop(flow_, *loop);
}

bool Candidates::IsFitSite(const FlowNode& node) const {
  const FlowCallSite& site = flow_.SiteOf(node);
  const auto callee = flow_.functions.find(flow_.CalleeOf(node));  // DropCallersOfOthers() sees if it is compiled
  return site.join == nullptr && site.announcement == nullptr && callee != flow_.functions.end() &&
         std::all_of(site.returns.begin(), site.returns.end(),
                     [&](const auto& result) { return callee->second.results.count(result.first) > 0; });
}

// Whether the node is in a block where it can be compiled. A result must live whenever its function is called. What
// leaves a loop must be on the one side of the loop's condition, and what goes round on the other. All arguments of a
// call must live in one block.
bool Candidates::IsWhereItShould(NodeId id) {
  const FlowNode& node = flow_.nodes[id];
  const BlockId block = blocks_.of(id);
  switch (node.kind) {
    case OpKind::kResult:
      return blocks_.IsWhole(block);
    case OpKind::kExit:
    case OpKind::kLoopNext: {
      const Block& side = blocks_[block];
      const bool is_side = !blocks_.IsWhole(block) && blocks_.IsWhole(side.parent);
      return is_side && flow_.nodes[side.branch].kind == OpKind::kBranch &&
             side.side == (node.kind == OpKind::kLoopNext ? 1 : 0);
    }
    case OpKind::kCallSite: {
      for (const Input& input : node.inputs) {
        if (!input.is_constant() && blocks_.OfSource(input.source) != block) return false;
      }
      return true;
    }
    default:
      return true;
  }
}

void Candidates::DropCallersOfOthers() {
  for (bool changed = true; changed;) {
    changed = false;
    for (const FlowNode& node : flow_.nodes) {
      if (node.kind != OpKind::kCallSite || node.is_removed) continue;
      const RegionId caller = FunctionOf(flow_, node.region);
      if (functions_.count(caller) == 0 || functions_.count(flow_.CalleeOf(node)) > 0) continue;
      functions_.erase(caller);
      changed = true;
    }
  }
}

std::set<RegionId> Candidates::WithLoops() const {
  std::set<RegionId> all = functions_;
  for (const FlowLoop& loop : flow_.loops) {
    if (functions_.count(FunctionOf(flow_, loop.region)) > 0) all.insert(loop.region);
  }
  return all;
}

}  // namespace tensorflow_recursion
