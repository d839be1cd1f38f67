// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/superfluous_waits.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "cc/analysis/condition.h"
#include "cc/analysis/effects.h"
#include "cc/analysis/frame_conditions.h"
#include "cc/analysis/late_values.h"
#include "cc/base/status.h"

namespace tensorflow_recursion {
namespace {

// Whether nodes of this kind fire when all their inputs are there, so that one may be implied by others.
bool WaitsForAll(OpKind kind) {
  switch (kind) {
    case OpKind::kScalar:
    case OpKind::kPiece:
    case OpKind::kPass:
    case OpKind::kSwitch:
    case OpKind::kSwitchN:
    case OpKind::kKernel:
    case OpKind::kLoopStart:
    case OpKind::kBranch:
    case OpKind::kResult:
    case OpKind::kExit:
    case OpKind::kRetval:
    case OpKind::kRetain:
    case OpKind::kRecall:
    case OpKind::kSend:
      return true;
    default:
      return false;
  }
}

// Finds the nodes that fire only after something that may have a side effect. To wait for these may order side effects.
// Where a kernel changes its input, each wait may order that change and a read of the same tensor, whoever reads it.
IdVector<NodeId, bool> FindOrdering(const FlowGraph& flow, const std::vector<NodeId>& order) {
  IdVector<NodeId, bool> orders(flow.nodes.size(), flow.ChangesInputs());
  const auto may_order = [](const FlowNode& node) {
    return node.kind == OpKind::kCallSite || node.kind == OpKind::kLoopStart ||
           (node.kind == OpKind::kKernel && IsStateful(*node.node));
  };
  MarkNodesBehind(flow, order, may_order, &orders);
  return orders;
}

// Decides which waits are superfluous, one node at a time, by the conditions that held when the dropper was made.
class WaitDropper {
 public:
  WaitDropper(FlowGraph* flow, const std::vector<NodeId>& order)
      : flow_(flow),
        num_analyzed_(flow->nodes.size()),
        conditions_(*flow, order),
        orders_effects_(FindOrdering(*flow, order)),
        late_(FindValuesAfterStatefulKernels(*flow, order)) {}

  // Keeps those control inputs and guards of the node that its values do not imply, all of them as control inputs.
  void DropAt(NodeId id) {
    FlowNode& node = flow_->nodes[id];
    Condition known;
    for (const Input& input : node.inputs) {
      if (input.is_token()) known = known.And(conditions_.Of(input.source));
    }
    std::vector<Source> kept;
    auto consider = [&](const Source& source) {
      if (IsSuperfluous(source, known)) return;
      known = known.And(conditions_.Of(source));
      kept.push_back(source);
    };
    for (const Source& control : node.controls) consider(control);
    for (Input& input : node.inputs) {
      for (const Source& guard : input.guards) consider(guard);
      input.guards.clear();
    }
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    node.controls = std::move(kept);
  }

  // Decides how the constants among a call's arguments get to the callee. The call takes a constant along when it opens
  // the frame, if that makes no difference: another argument says whether the call is live, and comes after all side
  // effects that the constant waits for; and no argument may come late, as it may wait for something that the callee
  // does without it. Else a node of its own sends the constant as a token, which opens the callee's frame by itself.
  void PlaceConstantsOf(NodeId site) {
    for (size_t i = 0; i < flow_->nodes[site].inputs.size(); ++i) {
      Input& input = flow_->nodes[site].inputs[i];
      if (!input.is_constant()) continue;
      if (MayStayInCaller(flow_->nodes[site], input)) {
        input.guards.clear();
      } else {
        SendAsToken(site, i);
      }
    }
  }

 private:
  // Whether an operator that is live under `known` need not wait for `source`: it surely comes after it, or the order
  // does not matter.
  bool IsSuperfluous(const Source& source, const Condition& known) const {
    if (!known.Implies(conditions_.Of(source))) return false;
    // A value behind a branch comes after the branch's predicate and all that led to it.
    if (flow_->nodes[source.node].kind == OpKind::kBranch && source.port != Source::kWholeNode) return true;
    return !orders_effects_[source.node];
  }

  bool MayStayInCaller(const FlowNode& site, const Input& constant) const {
    bool is_implied = false;
    for (const Input& other : site.inputs) {
      if (!other.is_token()) continue;
      if (IsLate(other.source.node)) return false;
      if (is_implied) continue;
      const Condition known = conditions_.Of(other);
      is_implied = std::all_of(constant.guards.begin(), constant.guards.end(),
                               [&](const Source& guard) { return IsSuperfluous(guard, known); });
    }
    return is_implied;
  }

  // Nodes that SendAsToken has added are not late: they wait for control inputs alone.
  bool IsLate(NodeId node) const { return node < num_analyzed_ && late_.IsLate(node); }

  void SendAsToken(NodeId site, size_t position) {
    const FlowNode& of_site = flow_->nodes[site];
    Input value = of_site.inputs[position];
    FlowNode pass(OpKind::kPass, of_site.region, of_site.node);
    conditions_.Add(conditions_.Of(value));
    pass.num_ports = 1;
    pass.controls = std::move(value.guards);
    value.guards.clear();
    pass.inputs.push_back(std::move(value));
    Input token;
    token.source = {flow_->nodes.Add(std::move(pass)), 0};
    flow_->nodes[site].inputs[position] = std::move(token);
  }

  FlowGraph* const flow_;
  // How many nodes there were when the dropper was made. `late_` knows nothing of those that it has added since.
  const size_t num_analyzed_;
  FrameConditions conditions_;
  const IdVector<NodeId, bool> orders_effects_;
  const LateValues late_;
};

// Removes nodes that only hand on a value or a signal: their readers read instead what they read.
class PassRemover {
 public:
  explicit PassRemover(FlowGraph* flow) : flow_(flow) {}

  // `order` may lack nodes at the end of the graph, if nothing but call sites reads them.
  void Run(const std::vector<NodeId>& order) {
    for (NodeId id : order) {
      Redirect(&flow_->nodes[id]);
      RemoveIfSuperfluous(id);
    }
    for (NodeId id : flow_->nodes.ids()) {
      if (id >= order.size()) Redirect(&flow_->nodes[id]);
    }
  }

 private:
  void Redirect(FlowNode* node) const {
    for (Input& input : node->inputs) {
      if (input.is_token()) Redirect(&input.source);
    }
    for (Source& control : node->controls) Redirect(&control);
  }

  void Redirect(Source* source) const {
    const auto position = redirected_.find(*source);
    if (position != redirected_.end()) *source = position->second;
  }

  void RemoveIfSuperfluous(NodeId id) {
    FlowNode& node = flow_->nodes[id];
    if (node.kind != OpKind::kPass) return;
    const bool only_hands_value =
        node.inputs.size() == 1 && node.num_ports == 1 && node.inputs[0].is_token() && node.controls.empty();
    const bool only_hands_signal = node.inputs.empty() && node.num_ports == 0 && node.controls.size() == 1;
    if (!only_hands_value && !only_hands_signal) return;
    const Source source = only_hands_value ? node.inputs[0].source : node.controls[0];
    redirected_[{id, 0}] = source;
    redirected_[{id, Source::kWholeNode}] = source;
    node.is_removed = true;
  }

  FlowGraph* const flow_;
  std::map<Source, Source> redirected_;
};

}  // namespace

absl::Status DropSuperfluousWaits(FlowGraph* flow) {
  std::vector<NodeId> order;
  TFR_RETURN_IF_ERROR(SortNodes(*flow, &order));
  WaitDropper dropper(flow, order);
  for (NodeId id : order) {
    const OpKind kind = flow->nodes[id].kind;
    if (WaitsForAll(kind)) dropper.DropAt(id);
    if (kind == OpKind::kCallSite) dropper.PlaceConstantsOf(id);
  }
  PassRemover(flow).Run(order);
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
