// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/keep_waits.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/analysis/effects.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/expand/call_nodes.h"
#include "cc/expand/control_inputs.h"
#include "cc/expand/effect_states.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;

// What has to be known of a list of nodes, or of a graph, to decide which waits to keep.
struct Waits {
  explicit Waits(size_t count) : is_call(count), states(count), readers(count), producers(count) {}

  // Several edges between two nodes, which are added one after the other, count as one.
  void AddEdge(int from, int to) {
    if (!readers[from].empty() && readers[from].back() == to) return;
    readers[from].push_back(to);
    producers[to].push_back(from);
  }

  // Each of these has an element for each node.
  std::vector<bool> is_call;
  EffectStates states;
  Neighbours readers;
  Neighbours producers;
};

// Finds the control edges that order something, and beside which there may be a path through a call.
class WaitsToKeep {
 public:
  explicit WaitsToKeep(const Waits& waits)
      : before_(waits.states), after_(waits.states), is_before_call_(waits.is_call), is_after_call_(waits.is_call) {
    Spread(waits.readers, &before_);
    Spread(waits.producers, &after_);
    Spread(waits.producers, &is_before_call_);
    Spread(waits.readers, &is_after_call_);
    ways_to_call_ = Count(waits.readers, is_before_call_);
    ways_from_call_ = Count(waits.producers, is_after_call_);
  }

  bool Has(int producer, int reader) const {
    return ways_to_call_[producer] > (is_before_call_[reader] ? 1 : 0) &&
           ways_from_call_[reader] > (is_after_call_[producer] ? 1 : 0) && before_[producer].IsSeenBy(after_[reader]);
  }

 private:
  // Says for each node how many of its neighbours are beside a call.
  static std::vector<int> Count(const Neighbours& neighbours, const std::vector<bool>& is_beside) {
    std::vector<int> counts(neighbours.size());
    for (size_t i = 0; i < counts.size(); ++i) {
      for (int neighbour : neighbours[i]) counts[i] += is_beside[neighbour] ? 1 : 0;
    }
    return counts;
  }

  // All of these are by node. What the node does itself, together with all that comes before it, or after it:
  EffectStates before_;
  EffectStates after_;
  // Whether the node comes before a call, or after one, or is one.
  std::vector<bool> is_before_call_;
  std::vector<bool> is_after_call_;
  // How many of its readers come before a call, and how many of the nodes it reads come after one.
  std::vector<int> ways_to_call_;
  std::vector<int> ways_from_call_;
};

// Whether the wait is kept anyway: a ControlTrigger, which waits for all effects, gets its waits back after Grappler,
// and edges out of a Merge are left alone.
bool IsSafe(const std::string& from, const std::string& to) { return to == "ControlTrigger" || from == "Merge"; }

NodeDef ConstantAfter(const std::string& node, const std::string& name, const std::string& device) {
  NodeDef constant;
  constant.set_name(name);
  constant.set_op("Const");
  constant.set_device(device);
  constant.add_input("^" + node);
  (*constant.mutable_attr())["dtype"].set_type(tensorflow::DT_BOOL);
  tensorflow::Tensor(true).AsProtoTensorContent((*constant.mutable_attr())["value"].mutable_tensor());
  return constant;
}

NodeDef MergeOf(const std::string& value, const std::string& name, const std::string& device) {
  NodeDef merge;
  merge.set_name(name);
  merge.set_op("Merge");
  merge.set_device(device);
  merge.add_input(value);
  (*merge.mutable_attr())["T"].set_type(tensorflow::DT_BOOL);
  (*merge.mutable_attr())["N"].set_i(1);
  return merge;
}

// Finds the waits to keep in a list of nodes.
class ListWaits {
 public:
  ListWaits(const CallProgram& program, NameTable* names, NodeList* list)
      : names_(*names), list_(*list), keep_(WaitsOf(program, *list)) {}

  void Keep() {
    const int count = static_cast<int>(list_.nodes.size());  // keepers, which are added behind, are not looked at
    for (int node = 0; node < count; ++node) {
      for (int i = 0; i < list_.nodes[node].input_size(); ++i) {
        const std::string input = list_.nodes[node].input(i);  // a copy: new nodes move the old ones
        if (!IsControl(input)) continue;
        const int producer = list_.ProducerOf(input);
        if (IsSafe(list_.nodes[producer].op(), list_.nodes[node].op()) || !keep_.Has(producer, node)) continue;
        const std::string& keeper = KeeperOf(producer);
        list_.nodes[node].set_input(i, "^" + keeper);
      }
    }
  }

 private:
  static Waits WaitsOf(const CallProgram& program, const NodeList& list) {
    Waits waits(list.nodes.size());
    waits.states = StatesOf(program, list);
    for (size_t i = 0; i < list.nodes.size(); ++i) {
      waits.is_call[i] = IsInvoke(list.nodes[i]);
      for (const std::string& input : list.nodes[i].input()) {
        waits.AddEdge(list.ProducerOf(input), static_cast<int>(i));
      }
    }
    return waits;
  }

  // The Merge to wait for in place of the node. It lives where the node does.
  const std::string& KeeperOf(int node) {
    std::string& keeper = keepers_[node];
    if (!keeper.empty()) return keeper;
    const std::string name = list_.nodes[node].name();
    const std::string device = list_.nodes[node].device();
    NodeDef constant = ConstantAfter(name, names_.Unique(name + kHasRunSuffix), device);
    NodeDef merge = MergeOf(constant.name(), names_.Unique(name + kKeptWaitSuffix), device);
    keeper = merge.name();
    list_.Add(std::move(constant), /*with_effect=*/false);
    list_.Add(std::move(merge), /*with_effect=*/false);
    return keeper;
  }

  NameTable& names_;
  NodeList& list_;
  const WaitsToKeep keep_;
  // The Merge to wait for in place of a node, by the position of the node in the list.
  std::map<int, std::string> keepers_;
};

// The same for a graph. Nothing is known of its functions, so calls may do anything.
class GraphWaits {
 public:
  explicit GraphWaits(Graph* graph) : graph_(graph), keep_(WaitsOf(*graph)) {}

  absl::Status Keep() {
    std::vector<const Edge*> edges;
    for (const Edge* edge : graph_->edges()) {
      if (!edge->IsControlEdge() || !edge->src()->IsOp() || !edge->dst()->IsOp()) continue;
      if (IsSafe(edge->src()->type_string(), edge->dst()->type_string())) continue;
      if (keep_.Has(edge->src()->id(), edge->dst()->id())) edges.push_back(edge);
    }
    for (const Edge* edge : edges) {
      Node* const reader = edge->dst();
      Node*& keeper = keepers_[edge->src()->id()];
      if (keeper == nullptr) TFR_RETURN_IF_ERROR(AddKeeper(edge->src(), &keeper));
      graph_->RemoveControlEdge(edge);
      graph_->AddControlEdge(keeper, reader);
    }
    return absl::OkStatus();
  }

 private:
  static Waits WaitsOf(const Graph& graph) {
    Waits waits(graph.num_node_ids());
    for (const Node* node : graph.op_nodes()) {
      const int id = node->id();
      waits.is_call[id] = node->type_string() == kInvokeOp;
      waits.states[id] = {waits.is_call[id] || HasEffect(*node), waits.is_call[id] || ReadsState(node->type_string())};
      for (const Edge* edge : node->in_edges()) {
        if (edge->src()->IsOp()) waits.AddEdge(edge->src()->id(), id);
      }
    }
    return waits;
  }

  absl::Status AddKeeper(Node* node, Node** keeper) {
    const std::string& device = node->requested_device();
    NodeDef constant = ConstantAfter(node->name(), graph_->NewName(node->name() + kHasRunSuffix), device);
    NodeDef merge = MergeOf(constant.name(), graph_->NewName(node->name() + kKeptWaitSuffix), device);
    for (NodeDef* def : {&constant, &merge}) {
      (*def->mutable_attr())["_class"].mutable_list()->add_s(absl::StrCat("loc:@", node->name()));
    }
    absl::Status status;
    Node* const value = graph_->AddNode(constant, &status);
    TFR_RETURN_IF_ERROR(status);
    *keeper = graph_->AddNode(merge, &status);
    TFR_RETURN_IF_ERROR(status);
    graph_->AddControlEdge(node, value);
    graph_->AddEdge(value, 0, *keeper, 0);
    return absl::OkStatus();
  }

  Graph* const graph_;
  const WaitsToKeep keep_;
  // The Merge to wait for in place of a node, by the id of the node.
  std::map<int, Node*> keepers_;
};

}  // namespace

void KeepWaits(NameTable* names, CallProgram* program) {
  const auto keep = [&](NodeList* list) {
    if (std::any_of(list->nodes.begin(), list->nodes.end(), IsInvoke)) ListWaits(*program, names, list).Keep();
  };
  keep(&program->main);
  for (const std::string& name : program->order) keep(&program->functions.at(name).body);
}

absl::Status KeepWaits(Graph* graph) { return GraphWaits(graph).Keep(); }

}  // namespace tensorflow_recursion
