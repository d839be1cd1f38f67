// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/flow_sources.h"

#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <utility>

#include "cc/analysis/flow_constants.h"
#include "cc/analysis/node_facts.h"
#include "cc/base/names.h"
#include "cc/base/status.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Edge;
using tensorflow::Node;

// The node and port that an edge's value comes from, behind nodes that only rename it.
std::pair<const Node*, int> OriginOf(const FlowBuilder& builder, const Edge* edge) {
  while (IsAlias(builder, edge->src())) {
    const Edge* next = InputEdge(edge->src(), 0);
    if (next == nullptr) break;
    edge = next;
  }
  return {edge->src(), edge->src_output()};
}

absl::Status VerifyHasInput(const Node* node, int input, const Edge* edge) {
  return edge != nullptr ? absl::OkStatus() : InvalidArgument("Node '", node->name(), "' lacks input ", input);
}

// Finds the entry at which the output of a loop's Merge is read: that of the variable, or of the number of the input
// that came. Returns false for any other node.
bool FindLoopEntry(const FlowBuilder& builder, const Node* node, int port, Source* source) {
  const FlowLoop* const loop = builder.flow->FindLoop(builder.regions().region(node));
  if (!node->IsMerge() || loop == nullptr) return false;
  const auto variable = loop->entries.find(node);
  if (variable == loop->entries.end()) return false;
  *source = {port == 0 ? variable->second : loop->index_entries.at(node), 0};
  return true;
}

// Where output `port` of a node that renames nothing comes from.
absl::Status ResolveOrigin(FlowBuilder* builder, const Node* node, int port, Source* source) {
  const FlowGraph& flow = *builder->flow;
  const NodeId made = builder->NodeOf(node);
  if (HoldsConstant(node)) {
    source->port = 0;
    return ConstantToken(builder, node, &source->node);
  }
  if (node->IsEnter()) {
    *source = {flow.FindLoop(flow.regions.LoopOf(node))->entries.at(node), 0};
  } else if (Is(node, kReturnOp)) {
    int64_t index = 0;
    TFR_RETURN_IF_ERROR(ReadInteger(node, kIndexAttr, &index));
    *source = {made, static_cast<int>(index)};
  } else if (Is(node, kAnnounceCallOp)) {
    *source = {made, *flow.SiteOf(flow.nodes[made]).announce_port};
  } else if (node->IsExit()) {
    *source = {flow.FindLoop(flow.regions.region(node))->start, static_cast<int>(flow.nodes[made].index)};
  } else if (node->IsSwitch() && made == kNone) {
    Input predicate;
    TFR_RETURN_IF_ERROR(ResolveToken(builder, node, 1, &predicate));
    *source = {BranchOn(builder, predicate.source, node), port};
  } else if (!FindLoopEntry(*builder, node, port, source)) {
    if (made == kNone) return InvalidArgument("Node '", node->name(), "' yields no value that can be read");
    *source = {made, port};
  }
  return absl::OkStatus();
}

// Finds what a control edge waits for. Some nodes are no event of their own: a control edge out of a constant waits for
// what the constant waits for, and one out of a Call for the value that is passed.
class ControlWalk {
 public:
  ControlWalk(FlowBuilder* builder, std::vector<Source>* controls) : builder_(builder), controls_(controls) {}

  absl::Status Run(const Node* node) {
    pending_ = {node};
    while (!pending_.empty()) {
      const Node* const current = pending_.back();
      pending_.pop_back();
      if (!seen_.insert(current).second) continue;
      if (Is(current, kResultOp) || current->IsRetval()) {
        return InvalidArgument("Node '", node->name(), "' ends a value's way and can't be a control input");
      }
      TFR_RETURN_IF_ERROR(Visit(current));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Visit(const Node* node) {
    if (Is(node, kCallOp) || Is(node, kJoinCallOp)) return VisitCall(node);
    if (HoldsConstant(node)) {
      VisitInputsOf(node);
      return absl::OkStatus();
    }
    if (IsAlias(*builder_, node)) {
      const Edge* const edge = InputEdge(node, 0);
      if (edge != nullptr && HoldsConstant(edge->src())) {
        pending_.push_back(edge->src());
        return absl::OkStatus();
      }
    }
    if (IsReadElsewhere(node)) return ResolveOutput(builder_, node, 0, &controls_->emplace_back());
    const NodeId made = builder_->NodeOf(node);
    if (made != kNone) {
      controls_->push_back({made, Source::kWholeNode});
      return absl::OkStatus();
    }
    if (!node->IsSwitch()) return InvalidArgument("Node '", node->name(), "' can't be a control input");
    Source side;
    TFR_RETURN_IF_ERROR(ResolveOutput(builder_, node, 0, &side));
    controls_->push_back({side.node, Source::kWholeNode});
    return absl::OkStatus();
  }

  void VisitInputsOf(const Node* node) {
    for (const Edge* edge : node->in_edges()) {
      if (builder_->regions().IsReal(edge)) pending_.push_back(edge->src());
    }
  }

  // Waits for the value that the Call passes, at the port where it comes from, and for the Call's control inputs.
  absl::Status VisitCall(const Node* call) {
    for (const Edge* edge : call->in_edges()) {
      if (!builder_->regions().IsReal(edge)) continue;
      const auto [src, port] = edge->IsControlEdge() ? std::pair(edge->src(), 0) : OriginOf(*builder_, edge);
      if (edge->IsControlEdge() || HoldsConstant(src)) {
        pending_.push_back(src);
      } else {
        TFR_RETURN_IF_ERROR(ResolveOutput(builder_, src, port, &controls_->emplace_back()));
      }
    }
    return absl::OkStatus();
  }

  // Whether what the node yields is an output of another flow node, or the one output of its own.
  bool IsReadElsewhere(const Node* node) const {
    return IsAlias(*builder_, node) || node->IsEnter() || node->IsExit() || Is(node, kReturnOp) ||
           Is(node, kAnnounceCallOp) || Is(node, kEntryOp) || Is(node, kFrameStartOp) || node->IsArg() ||
           (builder_->NodeOf(node) == kNone && node->IsMerge());
  }

  FlowBuilder* const builder_;
  std::vector<Source>* const controls_;
  std::vector<const Node*> pending_;
  std::unordered_set<const Node*> seen_;
};

absl::Status ResolveEdge(FlowBuilder* builder, const Edge* edge, Input* result) {
  const auto [src, port] = OriginOf(*builder, edge);
  if (!HoldsConstant(src)) return ResolveOutput(builder, src, port, &result->source);
  TFR_RETURN_IF_ERROR(ConstantOf(builder, src, &result->constant));
  return ResolveControls(builder, src, &result->guards);
}

}  // namespace

bool YieldsItsInput(const FlowBuilder& builder, const Node* node) {
  return Is(node, "Identity") || Is(node, "StopGradient") || node->IsLoopCond() ||
         (Is(node, "Snapshot") && !builder.has_references);
}

bool IsAlias(const FlowBuilder& builder, const Node* node) {
  if (node->IsNextIteration()) return true;
  if (!YieldsItsInput(builder, node)) return false;
  for (const Edge* edge : node->in_edges()) {
    if (!builder.regions().IsReal(edge)) continue;
    if (edge->IsControlEdge()) return false;
    if (tensorflow::IsRefType(edge->src()->output_type(edge->src_output()))) return false;
  }
  return true;
}

bool IsPredicateSwitch(const FlowBuilder& builder, const Node* node) {
  if (!node->IsSwitch() || IsSwitchN(node)) return false;
  for (const Edge* edge : node->in_edges()) {
    if (edge->IsControlEdge() && builder.regions().IsReal(edge)) return false;
  }
  const Edge* const data = InputEdge(node, 0);
  const Edge* const predicate = InputEdge(node, 1);
  return data != nullptr && predicate != nullptr && OriginOf(builder, data) == OriginOf(builder, predicate);
}

absl::Status ResolveOutput(FlowBuilder* builder, const Node* node, int port, Source* source) {
  while (IsAlias(*builder, node)) {
    const Edge* const edge = InputEdge(node, 0);
    if (edge == nullptr) return InvalidArgument("Node '", node->name(), "' has no input");
    node = edge->src();
    port = edge->src_output();
  }
  if (builder->regions().region(node) == kNone) {
    return InvalidArgument("Node '", node->name(), "' carries no value at run time");
  }
  return ResolveOrigin(builder, node, port, source);
}

absl::Status ResolveInput(FlowBuilder* builder, const Node* node, int input, Input* result) {
  const Edge* const edge = InputEdge(node, input);
  TFR_RETURN_IF_ERROR(VerifyHasInput(node, input, edge));
  return ResolveEdge(builder, edge, result);
}

absl::Status ResolveToken(FlowBuilder* builder, const Node* node, int input, Input* result) {
  const Edge* const edge = InputEdge(node, input);
  TFR_RETURN_IF_ERROR(VerifyHasInput(node, input, edge));
  return ResolveOutput(builder, edge->src(), edge->src_output(), &result->source);
}

absl::Status ResolveInputs(FlowBuilder* builder, const Node* node, bool as_tokens, std::vector<Input>* results) {
  const std::vector<const Edge*> edges = InputEdges(node);
  results->resize(edges.size());
  for (size_t i = 0; i < edges.size(); ++i) {
    TFR_RETURN_IF_ERROR(VerifyHasInput(node, static_cast<int>(i), edges[i]));
    TFR_RETURN_IF_ERROR(as_tokens
                            ? ResolveOutput(builder, edges[i]->src(), edges[i]->src_output(), &(*results)[i].source)
                            : ResolveEdge(builder, edges[i], &(*results)[i]));
  }
  return absl::OkStatus();
}

absl::Status ResolveTokenAndControls(FlowBuilder* builder, const Node* node, Input* result) {
  TFR_RETURN_IF_ERROR(ResolveToken(builder, node, 0, result));
  std::vector<Source> controls;
  TFR_RETURN_IF_ERROR(ResolveControls(builder, node, &controls));
  if (controls.empty()) return absl::OkStatus();
  FlowNode pass(OpKind::kPass, builder->regions().region(node), node);
  pass.num_ports = 1;
  pass.inputs.push_back(*result);
  pass.controls = std::move(controls);
  result->source = {builder->flow->nodes.Add(std::move(pass)), 0};
  return absl::OkStatus();
}

absl::Status ResolveControls(FlowBuilder* builder, const Node* node, std::vector<Source>* controls) {
  for (const Edge* edge : node->in_edges()) {
    if (!edge->IsControlEdge() || !builder->regions().IsReal(edge)) continue;
    TFR_RETURN_IF_ERROR(ControlWalk(builder, controls).Run(edge->src()));
  }
  std::sort(controls->begin(), controls->end());
  controls->erase(std::unique(controls->begin(), controls->end()), controls->end());
  return absl::OkStatus();
}

NodeId BranchOn(FlowBuilder* builder, const Source& predicate, const Node* reader) {
  const RegionId region = builder->regions().region(reader);
  auto [position, inserted] = builder->branches.try_emplace({region, predicate});
  if (inserted) {
    FlowNode branch(OpKind::kBranch, region, reader);
    branch.num_ports = 2;
    branch.inputs.emplace_back().source = predicate;
    position->second = builder->flow->nodes.Add(std::move(branch));
  }
  return position->second;
}

}  // namespace tensorflow_recursion
