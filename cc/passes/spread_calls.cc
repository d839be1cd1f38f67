// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/spread_calls.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/analysis/call_decision.h"
#include "cc/analysis/effects.h"
#include "cc/analysis/regions.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/graph/algorithm.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::AddNodeAttr;
using tensorflow::Edge;
using tensorflow::GetNodeAttr;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;

bool Is(const Node* node, const char* op) { return node->type_string() == op; }

// The nodes of one call.
struct Site {
  std::string caller;  // function; empty for the main graph
  std::string callee;
  std::map<int64_t, Node*> calls;  // by argument
  std::vector<Node*> returns;
};

// What is known of one function's body.
struct Body {
  std::map<int64_t, Node*> entries;  // by argument
  std::map<int64_t, Node*> results;  // by output
  Node* frame_start = nullptr;
  std::set<int64_t> waiting;    // arguments that may come late
  std::string lead;             // the device that decides whether a call lives
  std::set<std::string> hosts;  // devices with a part of it
  std::set<std::string> callees;
};

class Spreader {
 public:
  explicit Spreader(Graph* graph) : graph_(graph) {}

  absl::Status Run() {
    TFR_RETURN_IF_ERROR(regions_.Build(*graph_));
    TFR_RETURN_IF_ERROR(CollectBoundaries());
    AlignPorts();
    FindHosts();
    const bool is_spread = IsSpread();
    if (is_spread || HasLoops()) lives_.Find(*graph_, regions_);
    MarkPartialLoops();
    if (!is_spread) return absl::OkStatus();
    Mark();
    TFR_RETURN_IF_ERROR(DropKeepAlives());
    for (auto& [name, body] : bodies_) TFR_RETURN_IF_ERROR(SpreadFrameStart(name, &body));
    for (auto& [id, site] : sites_) TFR_RETURN_IF_ERROR(SpreadSite(id, &site));
    tensorflow::FixupSourceAndSinkEdges(graph_);
    return absl::OkStatus();
  }

 private:
  absl::Status CollectBoundaries() {
    for (Node* node : graph_->op_nodes()) {
      const bool is_call = Is(node, kCallOp);
      const bool is_entry = Is(node, kEntryOp);
      const bool is_frame_start = Is(node, kFrameStartOp);
      if (!is_call && !is_entry && !is_frame_start && !Is(node, kReturnOp) && !Is(node, kResultOp)) continue;
      std::string function;
      TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), kFunctionAttr, &function));
      Body& body = bodies_[function];
      if (is_frame_start) body.frame_start = node;
      if (is_frame_start) continue;
      int64_t index = 0;
      TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), kIndexAttr, &index));
      if (is_entry) body.entries[index] = node;
      if (Is(node, kResultOp)) body.results[index] = node;
      if (is_entry || Is(node, kResultOp)) continue;
      int64_t id = 0;
      TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), kCallIdAttr, &id));
      Site& site = sites_[id];
      site.caller = regions_.FunctionOf(node);
      site.callee = function;
      if (is_call) site.calls[index] = node;
      if (!is_call) site.returns.push_back(node);
    }
    return absl::OkStatus();
  }

  // Finds the arguments that may come only after a side effect elsewhere, be it one of the very call. A device that has
  // no other must not be the one that decides whether the call lives.
  void FindWaiting() {
    if (!HasSplitArguments()) return;
    std::set<std::string> waiting;  // functions whose results may come so
    for (const Node* node : graph_->op_nodes()) {
      if (!regions_.IsStructural(node) && HasEffect(*node)) waiting.insert(regions_.FunctionOf(node));
    }
    for (bool changed = !waiting.empty(); changed;) {
      changed = false;
      for (const auto& [id, site] : sites_) {
        if (waiting.count(site.callee) > 0) changed = waiting.insert(site.caller).second || changed;
      }
    }
    for (bool changed = !waiting.empty(); changed;) {
      changed = false;
      for (const auto& [id, site] : sites_) {
        for (const auto& [index, call] : site.calls) {
          if (bodies_[site.callee].waiting.count(index) > 0 || !MayWait(*call, waiting)) continue;
          bodies_[site.callee].waiting.insert(index);
          changed = true;
        }
      }
    }
  }

  // Whether there is a choice of the device that decides.
  bool HasSplitArguments() const {
    return std::any_of(bodies_.begin(), bodies_.end(), [](const auto& body) {
      const auto& entries = body.second.entries;
      return std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
        return entry.second->assigned_device_name() != entries.begin()->second->assigned_device_name();
      });
    });
  }

  bool MayWait(const Node& call, const std::set<std::string>& waiting) {
    std::set<const Node*> seen = {&call};
    std::vector<const Node*> work = {&call};
    while (!work.empty()) {
      const Node* node = work.back();
      work.pop_back();
      if (HasEffect(*node)) return true;
      std::string function;
      if (Is(node, kReturnOp) || Is(node, kEntryOp)) (void)GetNodeAttr(node->attrs(), kFunctionAttr, &function);
      int64_t index = 0;
      if (Is(node, kReturnOp) && waiting.count(function) > 0) return true;
      if (Is(node, kEntryOp) && GetNodeAttr(node->attrs(), kIndexAttr, &index).ok() &&
          bodies_[function].waiting.count(index) > 0) {
        return true;
      }
      for (const Edge* edge : node->in_edges()) {
        if (regions_.IsReal(edge) && seen.insert(edge->src()).second) work.push_back(edge->src());
      }
    }
    return false;
  }

  // A Call hands its value over to the Entry, a Result to the Return, within one device.
  void AlignPorts() {
    FindWaiting();
    for (auto& [name, body] : bodies_) {
      // An argument that waits for nothing weighs more than all that may. Pruning takes the Entries that nobody reads.
      const int heavy = static_cast<int>(body.entries.size()) + 1;
      std::map<std::string, int> weights;
      if (body.frame_start != nullptr) body.lead = body.frame_start->assigned_device_name();
      if (!body.entries.empty()) body.lead = body.entries.begin()->second->assigned_device_name();
      for (const auto& [index, entry] : body.entries) {
        weights[entry->assigned_device_name()] += body.waiting.count(index) > 0 ? 1 : heavy;
      }
      for (const auto& [device, weight] : weights) {
        if (weight > weights[body.lead]) body.lead = device;
      }
    }
    for (auto& [id, site] : sites_) {
      Body& callee = bodies_[site.callee];
      if (callee.lead.empty() && !site.calls.empty()) callee.lead = site.calls.begin()->second->assigned_device_name();
      for (auto& [index, call] : site.calls) {
        const auto entry = callee.entries.find(index);
        call->set_assigned_device_name(entry == callee.entries.end() ? callee.lead
                                                                     : entry->second->assigned_device_name());
      }
      for (Node* node : site.returns) {
        int64_t index = 0;
        if (!GetNodeAttr(node->attrs(), kIndexAttr, &index).ok()) continue;
        const auto result = callee.results.find(index);
        if (result != callee.results.end()) {
          node->set_assigned_device_name(result->second->assigned_device_name());
        }
      }
    }
  }

  // A caller has frames wherever its callees have.
  void FindHosts() {
    for (const Node* node : graph_->op_nodes()) {
      if (regions_.IsStructural(node)) continue;
      const std::string& function = regions_.FunctionOf(node);
      if (!function.empty()) bodies_[function].hosts.insert(node->assigned_device_name());
    }
    for (const auto& [id, site] : sites_) {
      if (!site.caller.empty()) bodies_[site.caller].callees.insert(site.callee);
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (auto& [name, body] : bodies_) {
        const size_t before = body.hosts.size();
        for (const std::string& callee : body.callees) {
          const std::set<std::string> hosts = bodies_[callee].hosts;
          body.hosts.insert(hosts.begin(), hosts.end());
        }
        changed = changed || body.hosts.size() > before;
      }
    }
  }

  bool IsSpread() const {
    std::set<std::string> devices;
    for (const auto& [name, body] : bodies_) devices.insert(body.hosts.begin(), body.hosts.end());
    // A token that crosses devices would be sent, and what sends it would pass for a part of the program.
    for (const Node* node : graph_->op_nodes()) {
      if (regions_.IsStructural(node)) devices.insert(node->assigned_device_name());
    }
    return devices.size() > 1;
  }

  bool HasLoops() const {
    const auto nodes = graph_->op_nodes();
    return std::any_of(nodes.begin(), nodes.end(), [](const Node* node) { return node->IsEnter(); });
  }

  void MarkPartialLoops() {
    for (Node* node : graph_->op_nodes()) {
      const bool is_part = node->IsEnter() || node->IsNextIteration() || node->IsExit() || node->IsLoopCond();
      if (!is_part || regions_.IsStructural(node)) continue;
      const auto loop = node->IsEnter() ? regions_.LoopOf(node) : regions_.region(node);
      if (lives_.IsPartial(loop)) node->AddAttr(kPartialLoopAttr, true);
    }
  }

  void Mark() {
    for (Node* node : graph_->op_nodes()) {
      if (!regions_.IsStructural(node)) node->AddAttr(kBodyAttr, regions_.FunctionOf(node));
    }
  }

  // Returns outside of bodies have an KeepAlive's token as their input.
  absl::Status DropKeepAlives() {
    std::vector<Node*> structural;
    std::vector<Node*> kept_alive;
    for (Node* node : graph_->op_nodes()) {
      if (regions_.IsStructural(node)) structural.push_back(node);
      if (Is(node, kReturnOp) && node->num_inputs() > 0) kept_alive.push_back(node);
    }
    for (Node* node : kept_alive) TFR_RETURN_IF_ERROR(DropInputs(node));
    for (Node* node : structural) TFR_RETURN_IF_ERROR(VerifyUnread(node));
    for (Node* node : structural) graph_->RemoveNode(node);
    return FindReturns();
  }

  absl::Status VerifyUnread(const Node* structural) const {
    for (const Edge* edge : structural->out_edges()) {
      if (edge->IsControlEdge() || regions_.IsStructural(edge->dst())) continue;
      return InvalidArgument("Node '", edge->dst()->name(), "' reads '", structural->name(),
                             "', which carries no value at run time");
    }
    return absl::OkStatus();
  }

  absl::Status FindReturns() {
    for (auto& [id, site] : sites_) site.returns.clear();
    for (Node* node : graph_->op_nodes()) {
      if (!Is(node, kReturnOp)) continue;
      int64_t id = 0;
      TFR_RETURN_IF_ERROR(GetNodeAttr(node->attrs(), kCallIdAttr, &id));
      sites_.at(id).returns.push_back(node);
    }
    return absl::OkStatus();
  }

  // Puts a Return without inputs in the place of `node`.
  absl::Status DropInputs(Node* node) {
    NodeDef def = node->def();
    def.clear_input();
    (*def.mutable_attr())["N"].set_i(0);
    const std::string device = node->assigned_device_name();
    std::vector<Node*> before;
    struct Reader {
      Node* node;
      int output;
      int input;
    };
    std::vector<Reader> after;
    for (const Edge* edge : node->in_edges()) {
      if (edge->IsControlEdge()) before.push_back(edge->src());
    }
    for (const Edge* edge : node->out_edges()) after.push_back({edge->dst(), edge->src_output(), edge->dst_input()});
    graph_->RemoveNode(node);
    absl::Status status;
    Node* const bare = graph_->AddNode(std::move(def), &status);
    TFR_RETURN_IF_ERROR(status);
    bare->set_assigned_device_name(device);
    for (Node* src : before) graph_->AddControlEdge(src, bare);
    for (const Reader& reader : after) graph_->AddEdge(bare, reader.output, reader.node, reader.input);
    return absl::OkStatus();
  }

  absl::Status AddNode(NodeDef def, const std::string& device, const std::string& function, Node** node) {
    AddNodeAttr(kBodyAttr, function, &def);
    def.set_name(graph_->NewName(def.name()));
    absl::Status status;
    *node = graph_->AddNode(std::move(def), &status);
    if (status.ok()) (*node)->set_assigned_device_name(device);
    return status;
  }

  // A FrameStart on every device, and what hung on the one that there was on the one beside it.
  absl::Status SpreadFrameStart(const std::string& name, Body* body) {
    if (body->frame_start == nullptr) {
      return InvalidArgument("Function '", name, "': the graph holds no FrameStart of its body");
    }
    std::map<std::string, Node*> frame_starts;
    frame_starts[body->frame_start->assigned_device_name()] = body->frame_start;
    for (const std::string& device : body->hosts) {
      if (frame_starts.count(device) > 0) continue;
      NodeDef def = body->frame_start->def();
      def.clear_input();
      def.mutable_attr()->erase(kBodyAttr);
      TFR_RETURN_IF_ERROR(AddNode(std::move(def), device, name, &frame_starts[device]));
    }
    const std::vector<const Edge*> edges(body->frame_start->out_edges().begin(), body->frame_start->out_edges().end());
    for (const Edge* edge : edges) {
      Node* const node = edge->dst();
      const auto beside = frame_starts.find(node->assigned_device_name());
      if (!node->IsOp() || beside == frame_starts.end() || beside->second == body->frame_start) continue;
      graph_->RemoveEdge(edge);
      graph_->AddControlEdge(beside->second, node);
    }
    return absl::OkStatus();
  }

  absl::Status SpreadSite(int64_t id, Site* site) {
    const Body& callee = bodies_.at(site->callee);
    if (site->calls.empty()) return absl::OkStatus();  // the executor will say so
    DropCrossingControls(*site);
    std::set<int> on_lead;
    for (const auto& [index, call] : site->calls) {
      if (call->assigned_device_name() == callee.lead) on_lead.insert(static_cast<int>(index));
    }
    const bool lead_decides = lives_.IsDecidedBy(id, on_lead);
    if (lead_decides && callee.hosts.size() < 2) return absl::OkStatus();
    const std::string& first = site->calls.begin()->second->name();
    const SitePieces pieces{id, first.substr(0, first.rfind('/')), site};
    Node* lives = nullptr;
    TFR_RETURN_IF_ERROR(lead_decides ? AddAnnouncement(pieces, &lives) : AddVotes(pieces, &lives));
    for (const std::string& device : callee.hosts) {
      if (lead_decides && device == callee.lead) continue;
      TFR_RETURN_IF_ERROR(AddJoin(pieces, device, lives));
    }
    return absl::OkStatus();
  }

  // What is added for one call.
  struct SitePieces {
    int64_t id;
    std::string name;  // of the call node
    const Site* site;
  };

  NodeDef PieceDef(const SitePieces& pieces, const char* name, const char* op) const {
    NodeDef def;
    def.set_name(absl::StrCat(pieces.name, "/", name));
    def.set_op(op);
    AddNodeAttr(kFunctionAttr, pieces.site->callee, &def);
    AddNodeAttr(kCallIdAttr, pieces.id, &def);
    return def;
  }

  absl::Status AddAnnouncement(const SitePieces& pieces, Node** announcement) {
    const std::string& lead = bodies_.at(pieces.site->callee).lead;
    TFR_RETURN_IF_ERROR(
        AddNode(PieceDef(pieces, "announcement", kAnnounceCallOp), lead, pieces.site->caller, announcement));
    for (const auto& [index, call] : pieces.site->calls) {
      if (call->assigned_device_name() == lead) graph_->AddControlEdge(call, *announcement);
    }
    return absl::OkStatus();
  }

  absl::Status AddJoin(const SitePieces& pieces, const std::string& device, Node* lives) {
    Node* join = nullptr;
    TFR_RETURN_IF_ERROR(AddNode(PieceDef(pieces, "join", kJoinCallOp), device, pieces.site->caller, &join));
    graph_->AddEdge(lives, 0, join, 0);
    for (Node* node : pieces.site->returns) {
      if (node->assigned_device_name() == device) graph_->AddControlEdge(join, node);
    }
    return absl::OkStatus();
  }

  // The lead does not see all that decides. Each device says whether any of its arguments lives, a bool or a dead one.
  absl::Status AddVotes(const SitePieces& pieces, Node** lives) {
    std::map<std::string, std::vector<Node*>> votes;  // by device
    for (int argument : lives_.DecidingArguments(pieces.id)) {
      Node* const call = pieces.site->calls.at(argument);
      NodeDef def;
      def.set_name(absl::StrCat(pieces.name, "/lives_", argument));
      def.set_op("Const");
      AddNodeAttr("dtype", tensorflow::DT_BOOL, &def);
      AddNodeAttr("value", tensorflow::Tensor(true), &def);
      Node* vote = nullptr;
      TFR_RETURN_IF_ERROR(AddNode(std::move(def), call->assigned_device_name(), pieces.site->caller, &vote));
      graph_->AddControlEdge(call, vote);
      votes[call->assigned_device_name()].push_back(vote);
    }
    const std::string& lead = bodies_.at(pieces.site->callee).lead;
    std::vector<Node*> all;
    for (const auto& [device, nodes] : votes) {
      TFR_RETURN_IF_ERROR(AddAny(pieces, nodes, device, &all.emplace_back()));
    }
    return AddAny(pieces, all, votes.count(lead) > 0 ? lead : votes.begin()->first, lives);
  }

  absl::Status AddAny(const SitePieces& pieces, const std::vector<Node*>& votes, const std::string& device,
                      Node** any) {
    if (votes.size() == 1) {
      *any = votes[0];
      return absl::OkStatus();
    }
    NodeDef def;
    def.set_name(absl::StrCat(pieces.name, "/lives"));
    def.set_op("Merge");
    AddNodeAttr("T", tensorflow::DT_BOOL, &def);
    AddNodeAttr("N", static_cast<int>(votes.size()), &def);
    TFR_RETURN_IF_ERROR(AddNode(std::move(def), device, pieces.site->caller, any));
    for (size_t i = 0; i < votes.size(); ++i) graph_->AddEdge(votes[i], 0, *any, static_cast<int>(i));
    return absl::OkStatus();
  }

  // A Return waits for the Calls of its device; the JoinCall stands for the others.
  void DropCrossingControls(const Site& site) {
    for (Node* node : site.returns) {
      const std::vector<const Edge*> edges(node->in_edges().begin(), node->in_edges().end());
      for (const Edge* edge : edges) {
        if (edge->src()->assigned_device_name() != node->assigned_device_name()) graph_->RemoveControlEdge(edge);
      }
    }
  }

  Graph* const graph_;
  GraphRegions regions_;
  CallLives lives_;
  std::map<std::string, Body> bodies_;
  std::map<int64_t, Site> sites_;
};

}  // namespace

absl::Status SpreadCalls(Graph* graph) {
  const auto nodes = graph->op_nodes();
  if (std::none_of(nodes.begin(), nodes.end(), [](const Node* node) { return Is(node, kCallOp); })) {
    return absl::OkStatus();
  }
  return Spreader(graph).Run();
}

absl::Status SpreadCallsPass::Run(const tensorflow::GraphOptimizationPassOptions& options) {
  if (options.graph == nullptr || options.is_function_graph) return absl::OkStatus();
  return SpreadCalls(options.graph->get());
}

}  // namespace tensorflow_recursion
