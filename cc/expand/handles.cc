// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/handles.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cc/expand/call_nodes.h"
#include "cc/expand/control_flow_nodes.h"
#include "cc/expand/placement.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Edge;
using tensorflow::Node;

bool ForwardsItsInput(const Node& node) {
  return node.IsIdentity() || node.IsSwitch() || node.IsMerge() || node.IsEnter() || node.IsExit() ||
         node.IsNextIteration() || IsBranchInput(node.def());
}

Node* OutputOf(const tensorflow::Graph& body, int index) {
  for (Node* node : body.op_nodes()) {
    if (node->IsRetval() && IndexOf(*node) == index) return node;
  }
  return nullptr;
}

// The Retain of the function that writes the records that `recall` reads. The forward function of a gradient writes
// several kinds of records.
Node* RetainFor(const Node& recall, const tensorflow::Graph& graph) {
  for (Node* node : graph.op_nodes()) {
    if (IsRetain(node->def()) && RecordOwner(node->def()) == RecordOwner(recall.def())) return node;
  }
  return nullptr;
}

}  // namespace

Handle HandleFinder::Find(const LocatedNode& call, int index, const std::vector<LocatedNode>& pending,
                          LocatedNode* unbound) const {
  std::vector<Port> work;  // the last one is followed first
  std::set<std::pair<const Node*, int>> seen;
  AddInput(call, index, &work);
  while (!work.empty()) {
    const Port port = work.back();
    const Node& node = *port.place.node;
    work.pop_back();
    if (!seen.emplace(&node, port.output).second) continue;
    if (node.IsMerge()) {
      AddMerged(port, &work);
    } else if (ForwardsItsInput(node)) {
      AddInput(port.place, 0, &work);
    } else if (IsInvoke(node.def())) {
      if (AddReturned(port, &work)) continue;
      const bool is_pending =
          std::any_of(pending.begin(), pending.end(), [&](const LocatedNode& other) { return other.node == &node; });
      if (is_pending) continue;
      *unbound = port.place;
      return {};
    } else if (!IsRecall(node.def()) || !AddRetained(port, &work)) {
      const Handle handle = HandleAt(port.place.function, node);
      if (handle.is_known) return handle;
    }
  }
  return {};
}

void HandleFinder::AddInput(const LocatedNode& place, int index, std::vector<Port>* work) {
  const Edge* edge = nullptr;
  if (place.node->input_edge(index, &edge).ok()) work->push_back({{place.function, edge->src()}, edge->src_output()});
}

// The first input is followed first. A handle that comes from an iteration of a loop is one that came into the loop.
void HandleFinder::AddMerged(const Port& port, std::vector<Port>* work) const {
  for (int i = port.place.node->num_inputs() - 1; i >= 0; --i) {
    const Edge* edge = nullptr;
    if (!port.place.node->input_edge(i, &edge).ok() || edge->src()->IsNextIteration()) continue;
    AddInput(port.place, i, work);
  }
}

bool HandleFinder::AddReturned(const Port& port, std::vector<Port>* work) const {
  if (bound_.count(port.place.node) == 0) return false;
  const CalledFunction& callee = program_.functions.at(CalleeOf(port.place.node->def()));
  Node* const output = OutputOf(*callee.graph, port.output);
  if (output != nullptr) AddInput({&callee, output}, 0, work);
  return true;
}

bool HandleFinder::AddRetained(const Port& port, std::vector<Port>* work) const {
  const Node* record = nullptr;
  if (!port.place.node->input_node(0, &record).ok() || !record->IsArg()) return false;
  const auto forward = program_.functions.find(HandleAt(port.place.function, *record).record_of);
  if (forward == program_.functions.end()) return false;
  Node* const retain = RetainFor(*port.place.node, *forward->second.graph);
  if (retain == nullptr || port.output >= retain->num_inputs()) return false;
  AddInput({&forward->second, retain}, port.output, work);
  return true;
}

Handle HandleFinder::HandleAt(const CalledFunction* function, const Node& node) {
  if (node.type_string() == "FakeParam") return {};  // stands in a branch for a value that only another branch has
  if (node.IsArg() && function != nullptr) return function->handles.at(IndexOf(node));
  Handle handle;
  handle.device = DeviceOf(node);
  if (IsRetain(node.def()) && function != nullptr) handle.record_of = function->name;
  handle.is_known = !handle.device.empty() || !handle.record_of.empty();
  return handle;
}

}  // namespace tensorflow_recursion
