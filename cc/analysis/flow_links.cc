// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/flow_links.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cc/analysis/flow_sources.h"
#include "cc/analysis/node_facts.h"
#include "cc/base/status.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Node;

void SortOnce(std::vector<Source>* sources) {
  std::sort(sources->begin(), sources->end());
  sources->erase(std::unique(sources->begin(), sources->end()), sources->end());
}

absl::Status LinkStart(FlowBuilder* builder, const FlowLoop& loop) {
  FlowGraph& flow = *builder->flow;
  std::vector<Input> inputs;
  std::vector<Source> controls;
  for (const Node* enter : loop.enters) {
    if (flow.nodes[loop.start].takes_dead) {
      TFR_RETURN_IF_ERROR(ResolveTokenAndControls(builder, enter, &inputs.emplace_back()));
      continue;
    }
    TFR_RETURN_IF_ERROR(ResolveInput(builder, enter, 0, &inputs.emplace_back()));
    TFR_RETURN_IF_ERROR(ResolveControls(builder, enter, &controls));
  }
  flow.nodes[loop.start].inputs = std::move(inputs);
  flow.nodes[loop.start].controls = std::move(controls);
  return absl::OkStatus();
}

// Adds a token that lives if the loop's condition holds. On devices other than the condition's, partitioning has added
// a variable of the loop that carries just that.
absl::Status LinkCondition(FlowBuilder* builder, const FlowLoop& loop, std::vector<Input>* inputs) {
  if (loop.condition != nullptr) {
    Source condition;
    TFR_RETURN_IF_ERROR(ResolveOutput(builder, loop.condition, 0, &condition));
    inputs->emplace_back().source = {BranchOn(builder, condition, loop.condition), 1};
    return absl::OkStatus();
  }
  const auto control = std::find_if_not(loop.nexts.begin(), loop.nexts.end(), IsOfPartialLoop);
  return control == loop.nexts.end() ? absl::OkStatus()
                                     : ResolveTokenAndControls(builder, *control, &inputs->emplace_back());
}

// The end of an iteration waits for all variables that go on. In a partial loop it also sees what goes to the Exits,
// and whether the condition holds.
absl::Status LinkNext(FlowBuilder* builder, FlowLoop* loop) {
  std::vector<Input> inputs;
  std::vector<Source> controls;
  for (const Node* next : loop->nexts) {
    std::vector<Source>& own = loop->next_controls.emplace_back();
    TFR_RETURN_IF_ERROR(ResolveControls(builder, next, &own));
    controls.insert(controls.end(), own.begin(), own.end());
    TFR_RETURN_IF_ERROR(loop->is_partial ? ResolveTokenAndControls(builder, next, &inputs.emplace_back())
                                         : ResolveToken(builder, next, 0, &inputs.emplace_back()));
  }
  if (loop->is_partial) {
    controls.clear();  // each token waits for its own
    for (const Node* exit : loop->exits) {
      TFR_RETURN_IF_ERROR(ResolveTokenAndControls(builder, exit, &inputs.emplace_back()));
    }
    TFR_RETURN_IF_ERROR(LinkCondition(builder, *loop, &inputs));
  }
  SortOnce(&controls);
  FlowNode& node = builder->flow->nodes[loop->next];
  node.inputs = std::move(inputs);
  node.controls = std::move(controls);
  return absl::OkStatus();
}

// An argument whose Call has control inputs goes through a node of its own, which waits for them; a constant has them
// as guards. DropSuperfluousWaits finds later which of these waits are superfluous.
absl::Status LinkCallSite(FlowBuilder* builder, const FlowCallSite& site) {
  FlowGraph& flow = *builder->flow;
  std::vector<Input> inputs;
  for (const auto& [index, call] : site.calls) {
    Input value;
    TFR_RETURN_IF_ERROR(ResolveInput(builder, call, 0, &value));
    std::vector<Source> controls;
    TFR_RETURN_IF_ERROR(ResolveControls(builder, call, &controls));
    if (value.is_constant()) {
      value.guards.insert(value.guards.end(), controls.begin(), controls.end());
    } else if (!controls.empty()) {
      FlowNode pass(OpKind::kPass, flow.nodes[site.node].region, call);
      pass.num_ports = 1;
      pass.inputs.push_back(value);
      pass.controls = std::move(controls);
      value.source = {flow.nodes.Add(std::move(pass)), 0};
    }
    inputs.push_back(std::move(value));
  }
  if (site.join != nullptr) TFR_RETURN_IF_ERROR(ResolveToken(builder, site.join, 0, &inputs.emplace_back()));
  flow.nodes[site.node].inputs = std::move(inputs);
  return absl::OkStatus();
}

// Whether nodes of this kind take constants only as tokens.
bool TakesTokens(OpKind kind) {
  return kind == OpKind::kMerge || kind == OpKind::kResult || kind == OpKind::kExit || kind == OpKind::kRetval ||
         kind == OpKind::kSend;
}

// Whether the node's inputs have been linked with a call site or a loop, or it has none.
bool IsLinkedElsewhere(OpKind kind) {
  return kind == OpKind::kCallSite || kind == OpKind::kEntry || kind == OpKind::kFrameStart ||
         kind == OpKind::kArgument;
}

// A merge waits for its control inputs, but may live when they are dead. Lowered conditionals join the effects of both
// branches behind the merge, and those of the branch that was not taken are dead.
Source JoinDeadOrAlive(FlowGraph* flow, NodeId merge, std::vector<Source> controls) {
  FlowNode join(OpKind::kUnion, flow->nodes[merge].region, flow->nodes[merge].node);
  join.controls = std::move(controls);
  return {flow->nodes.Add(std::move(join)), Source::kWholeNode};
}

absl::Status LinkNode(FlowBuilder* builder, NodeId id) {
  FlowGraph& flow = *builder->flow;
  const Node* const node = flow.nodes[id].node;
  const OpKind kind = flow.nodes[id].kind;
  if (node == nullptr || builder->NodeOf(node) != id || IsLinkedElsewhere(kind)) return absl::OkStatus();
  std::vector<Input> inputs;
  TFR_RETURN_IF_ERROR(ResolveInputs(builder, node, TakesTokens(kind), &inputs));
  std::vector<Source> controls;
  TFR_RETURN_IF_ERROR(ResolveControls(builder, node, &controls));
  if (kind == OpKind::kSwitch) {
    // The predicate must be a token, even if constant: its branch tells the dead side.
    inputs[1] = Input();
    TFR_RETURN_IF_ERROR(ResolveToken(builder, node, 1, &inputs[1]));
    const NodeId branch = BranchOn(builder, inputs[1].source, node);
    flow.nodes[id].branch = branch;
  }
  if (kind == OpKind::kMerge && !controls.empty()) controls = {JoinDeadOrAlive(&flow, id, std::move(controls))};
  flow.nodes[id].inputs = std::move(inputs);
  flow.nodes[id].controls = std::move(controls);
  return absl::OkStatus();
}

}  // namespace

absl::Status LinkNodes(FlowBuilder* builder) {
  for (FlowLoop& loop : builder->flow->loops) {
    TFR_RETURN_IF_ERROR(LinkStart(builder, loop));
    if (loop.next != kNone) TFR_RETURN_IF_ERROR(LinkNext(builder, &loop));
  }
  for (const FlowCallSite& site : builder->flow->call_sites) TFR_RETURN_IF_ERROR(LinkCallSite(builder, site));
  // Nodes that are added meanwhile are linked when they are added, so only those that exist by now are visited.
  for (NodeId id : builder->flow->nodes.ids()) TFR_RETURN_IF_ERROR(LinkNode(builder, id));
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
