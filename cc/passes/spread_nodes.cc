// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/spread_nodes.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::AddNodeAttr;
using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;

// Adds a node that is part of the body of `owner`, or of the main graph if that is empty.
absl::Status AddNode(NodeDef def, const std::string& device, const std::string& owner, Graph* graph, Node** node) {
  AddNodeAttr(kBodyAttr, owner, &def);
  def.set_name(graph->NewName(def.name()));
  absl::Status status;
  *node = graph->AddNode(std::move(def), &status);
  if (status.ok()) (*node)->set_assigned_device_name(device);
  return status;
}

// Adds the nodes that tell the devices of a call whether it lives.
class Announcer {
 public:
  Announcer(int64_t call_id, const CallPorts& call, const BodyPorts& callee, Graph* graph)
      : call_id_(call_id),
        call_(call),
        callee_(callee),
        graph_(graph),
        name_(CallOfNode(call.calls.begin()->second->name())) {}

  // For a call that the deciding device can decide by its own arguments. The AnnounceCall lives if the call does.
  absl::Status AddAnnouncement(Node** lives) {
    TFR_RETURN_IF_ERROR(AddNode(Def("announcement", kAnnounceCallOp), callee_.decider, call_.caller, graph_, lives));
    for (const auto& [index, node] : call_.calls) {
      if (node->assigned_device_name() == callee_.decider) graph_->AddControlEdge(node, *lives);
    }
    return absl::OkStatus();
  }

  // For any other call. Each device that has some of the deciding arguments says whether one of these lives: it yields
  // a bool, which is dead if none does. `*lives` is set to a node that lives if one of these bools does.
  absl::Status AddVotes(const std::set<int>& deciding_arguments, Node** lives) {
    // The Calls of deciding arguments, by their device.
    std::map<std::string, std::vector<Node*>> votes;
    for (int argument : deciding_arguments) {
      Node* const node = call_.calls.at(argument);
      NodeDef def;
      def.set_name(absl::StrCat(name_, kLivesSuffix, "_", argument));
      def.set_op("Const");
      AddNodeAttr("dtype", tensorflow::DT_BOOL, &def);
      AddNodeAttr("value", tensorflow::Tensor(true), &def);
      Node* vote = nullptr;
      TFR_RETURN_IF_ERROR(AddNode(std::move(def), node->assigned_device_name(), call_.caller, graph_, &vote));
      graph_->AddControlEdge(node, vote);
      votes[node->assigned_device_name()].push_back(vote);
    }
    std::vector<Node*> all;
    for (const auto& [device, nodes] : votes) TFR_RETURN_IF_ERROR(AddAny(nodes, device, &all.emplace_back()));
    return AddAny(all, votes.count(callee_.decider) > 0 ? callee_.decider : votes.begin()->first, lives);
  }

  // Lets the call's nodes on `device` wait for `lives`, which one of the two functions above has added.
  absl::Status AddJoin(const std::string& device, Node* lives) {
    Node* join = nullptr;
    TFR_RETURN_IF_ERROR(AddNode(Def("join", kJoinCallOp), device, call_.caller, graph_, &join));
    graph_->AddEdge(lives, 0, join, 0);
    for (Node* node : call_.returns) {
      if (node->assigned_device_name() == device) graph_->AddControlEdge(join, node);
    }
    return absl::OkStatus();
  }

 private:
  NodeDef Def(const char* name, const char* op) const {
    NodeDef def;
    def.set_name(absl::StrCat(name_, "/", name));
    def.set_op(op);
    AddNodeAttr(kFunctionAttr, call_.callee, &def);
    AddNodeAttr(kCallIdAttr, call_id_, &def);
    return def;
  }

  // Sets `*any` to a node that lives if one of the votes does.
  absl::Status AddAny(const std::vector<Node*>& votes, const std::string& device, Node** any) {
    if (votes.size() == 1) {
      *any = votes[0];
      return absl::OkStatus();
    }
    NodeDef def;
    def.set_name(absl::StrCat(name_, kLivesSuffix));
    def.set_op("Merge");
    AddNodeAttr("T", tensorflow::DT_BOOL, &def);
    AddNodeAttr("N", static_cast<int>(votes.size()), &def);
    TFR_RETURN_IF_ERROR(AddNode(std::move(def), device, call_.caller, graph_, any));
    for (size_t i = 0; i < votes.size(); ++i) graph_->AddEdge(votes[i], 0, *any, static_cast<int>(i));
    return absl::OkStatus();
  }

  const int64_t call_id_;
  const CallPorts& call_;
  const BodyPorts& callee_;
  Graph* const graph_;
  // What the names of the added nodes begin with: the call's name.
  const std::string name_;
};

// Removes the control edges of Returns from nodes on other devices. A Return that then waits for nothing waits for the
// Calls of its own device: these tell in which frame or iteration it is.
void DropCrossingControls(const CallPorts& call, Graph* graph) {
  for (Node* node : call.returns) {
    const std::string& device = node->assigned_device_name();
    const std::vector<const Edge*> edges(node->in_edges().begin(), node->in_edges().end());
    bool waits = false;
    for (const Edge* edge : edges) {
      const bool is_here = edge->src()->assigned_device_name() == device;
      waits |= is_here;
      if (!is_here) graph->RemoveControlEdge(edge);
    }
    if (waits) continue;
    for (const auto& [index, source] : call.calls) {
      if (source->assigned_device_name() == device) graph->AddControlEdge(source, node);
    }
  }
}

}  // namespace

absl::Status SpreadFrameStart(const std::string& function, const BodyPorts& body, Graph* graph) {
  if (body.frame_start == nullptr) {
    return InvalidArgument("Function '", function, "': the graph holds no FrameStart of its body");
  }
  // The FrameStart of each device.
  std::map<std::string, Node*> frame_starts;
  frame_starts[body.frame_start->assigned_device_name()] = body.frame_start;
  for (const std::string& device : body.hosts) {
    if (frame_starts.count(device) > 0) continue;
    NodeDef def = body.frame_start->def();
    def.clear_input();
    def.mutable_attr()->erase(kBodyAttr);
    TFR_RETURN_IF_ERROR(AddNode(std::move(def), device, function, graph, &frame_starts[device]));
  }
  const std::vector<const Edge*> edges(body.frame_start->out_edges().begin(), body.frame_start->out_edges().end());
  for (const Edge* edge : edges) {
    Node* const node = edge->dst();
    const auto beside = frame_starts.find(node->assigned_device_name());
    if (!node->IsOp() || beside == frame_starts.end() || beside->second == body.frame_start) continue;
    graph->RemoveEdge(edge);
    graph->AddControlEdge(beside->second, node);
  }
  return absl::OkStatus();
}

absl::Status SpreadCall(int64_t call_id, const CallPorts& call, const BodyPorts& callee, const CallDecisions& decisions,
                        Graph* graph) {
  if (call.calls.empty()) return absl::OkStatus();  // the executor will say so
  DropCrossingControls(call, graph);
  std::set<int> at_decider;
  for (const auto& [index, node] : call.calls) {
    if (node->assigned_device_name() == callee.decider) at_decider.insert(static_cast<int>(index));
  }
  const bool is_seen_by_decider = decisions.IsDecidedBy(call_id, at_decider);
  if (is_seen_by_decider && callee.hosts.size() < 2) return absl::OkStatus();
  Announcer announcer(call_id, call, callee, graph);
  Node* announcement = nullptr;
  TFR_RETURN_IF_ERROR(is_seen_by_decider ? announcer.AddAnnouncement(&announcement)
                                         : announcer.AddVotes(decisions.DecidingArguments(call_id), &announcement));
  for (const std::string& device : callee.hosts) {
    if (is_seen_by_decider && device == callee.decider) continue;
    TFR_RETURN_IF_ERROR(announcer.AddJoin(device, announcement));
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
