// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/branch_inputs.h"

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "cc/analysis/node_owners.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/expand/control_flow_nodes.h"
#include "cc/expand/name_table.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/algorithm.h"
#include "tensorflow/core/graph/tensor_id.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::GraphDef;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::TensorId;

// Whether the outputs of `node` are those of a branch, or an iteration, and tell of shapes. Among the values that a
// loop only reads, this is true of handles of variables alone: other values need no BranchInput, and behind one
// TensorFlow could not fold constants. Elements of a list have shapes of their own each time they are read.
bool HasBranchOutputs(const NodeDef& node) {
  const auto type = node.attr().find("T");
  if (type == node.attr().end() || type->second.type() == tensorflow::DT_VARIANT) return false;
  if (node.op() == "Switch" || node.op() == "_SwitchN") return true;
  return IsConstantEnter(node) && type->second.type() == tensorflow::DT_RESOURCE;
}

// The names of nodes that some node reads, not only waits for.
std::unordered_set<std::string> NodesThatAreRead(const GraphDef& graph) {
  std::unordered_set<std::string> read;
  for (const NodeDef& node : graph.node()) {
    for (const std::string& input : node.input()) {
      const TensorId id = tensorflow::ParseTensorName(input);
      if (id.index() >= 0) read.emplace(id.node());
    }
  }
  return read;
}

// Whether what reads a branch may tell of the shape. A pivot, which others only wait for, a Merge, which has a shape of
// its own, and a BranchInput that is there already do not. `is_read` says whether something reads the reader in turn.
bool TellsOfShape(const NodeDef& reader, bool is_read) {
  return !IsMerge(reader) && reader.op() != kBranchInputOp && (is_read || reader.op() != "Identity");
}

// Whether a Switch makes pivots of the predicate itself, a scalar.
bool SwitchesPredicate(const NodeDef& node) { return node.input_size() > 1 && node.input(0) == node.input(1); }
bool SwitchesPredicate(const Node& node) {
  const Edge *value = nullptr, *predicate = nullptr;
  return node.input_edge(0, &value).ok() && node.input_edge(1, &predicate).ok() && value->src() == predicate->src() &&
         value->src_output() == predicate->src_output();
}

std::string WantedName(const std::string& branch, int output) { return absl::StrCat(branch, "/branch_input_", output); }

// A BranchInput for an output of `branch`, without its input.
NodeDef BranchInput(const NodeDef& branch, std::string name) {
  NodeDef node;
  node.set_name(std::move(name));
  node.set_op(kBranchInputOp);
  node.set_device(branch.device());
  (*node.mutable_attr())["T"] = branch.attr().at("T");
  CopyOwner(branch, &node);
  return node;
}

// Lets what `edges` lead to read `port` of `source` instead.
void MoveReaders(const std::vector<const Edge*>& edges, Node* source, int port, Graph* graph) {
  for (const Edge* edge : edges) {
    Node* const reader = edge->dst();
    const int position = edge->dst_input();
    graph->RemoveEdge(edge);
    graph->AddEdge(source, port, reader, position);
  }
}

bool IsRead(const Node& node) {
  return absl::c_any_of(node.out_edges(), [](const Edge* edge) { return !edge->IsControlEdge(); });
}

absl::Status AddBehind(Node* branch, Graph* graph) {
  std::map<int, std::vector<const Edge*>> readers;
  for (const Edge* edge : branch->out_edges()) {
    const Node& reader = *edge->dst();
    if (!edge->IsControlEdge() && TellsOfShape(reader.def(), IsRead(reader))) {
      readers[edge->src_output()].push_back(edge);
    }
  }
  for (const auto& [output, edges] : readers) {
    absl::Status status;
    std::string name = graph->NewName(WantedName(branch->name(), output));
    Node* const added = graph->AddNode(BranchInput(branch->def(), std::move(name)), &status);
    TFR_RETURN_IF_ERROR(status);
    added->set_assigned_device_name(branch->assigned_device_name());
    graph->AddEdge(branch, output, added, 0);
    MoveReaders(edges, added, 0, graph);
  }
  return absl::OkStatus();
}

bool HasControlEdge(const Node& node) {
  const auto is_control = [](const Edge* edge) {
    return edge->IsControlEdge() && edge->src()->IsOp() && edge->dst()->IsOp();
  };
  return absl::c_any_of(node.in_edges(), is_control) || absl::c_any_of(node.out_edges(), is_control);
}

// Lets whoever reads `node` read `port` of `source`.
void ReadInstead(Node* node, Node* source, int port, Graph* graph) {
  std::vector<const Edge*> edges;
  for (const Edge* edge : node->out_edges()) {
    if (!edge->IsControlEdge()) edges.push_back(edge);
  }
  MoveReaders(edges, source, port, graph);
}

absl::Status Remove(Node* node, Graph* graph) {
  const Edge* input = nullptr;
  TFR_RETURN_IF_ERROR(node->input_edge(0, &input));
  if (!HasControlEdge(*node)) {
    ReadInstead(node, input->src(), input->src_output(), graph);
    graph->RemoveNode(node);
    return absl::OkStatus();
  }
  // An operator cannot be changed in place, and its name is free only when it is gone.
  NodeDef def = node->def();
  def.set_op("Identity");
  def.set_name(graph->NewName(absl::StrCat(node->name(), "/waited_for")));
  absl::Status status;
  Node* const identity = graph->AddNode(std::move(def), &status);
  TFR_RETURN_IF_ERROR(status);
  identity->set_assigned_device_name(node->assigned_device_name());
  graph->AddEdge(input->src(), input->src_output(), identity, 0);
  for (const Edge* edge : node->in_edges()) {
    if (edge->IsControlEdge()) graph->AddControlEdge(edge->src(), identity);
  }
  for (const Edge* edge : node->out_edges()) {
    if (edge->IsControlEdge()) graph->AddControlEdge(identity, edge->dst());
  }
  ReadInstead(node, identity, 0, graph);
  graph->RemoveNode(node);
  return absl::OkStatus();
}

}  // namespace

void AddBranchInputs(GraphDef* graph) {
  std::unordered_map<std::string, const NodeDef*> branches;
  NameTable names;
  for (const NodeDef& node : graph->node()) {
    names.Take(node.name());
    if (HasBranchOutputs(node) && !SwitchesPredicate(node)) branches[node.name()] = &node;
  }
  if (branches.empty()) return;
  const std::unordered_set<std::string> read = NodesThatAreRead(*graph);
  std::map<std::string, NodeDef> added;
  for (NodeDef& node : *graph->mutable_node()) {
    if (!TellsOfShape(node, read.count(node.name()) > 0)) continue;
    for (std::string& input : *node.mutable_input()) {
      const TensorId id = tensorflow::ParseTensorName(input);
      const auto branch = id.index() < 0 ? branches.end() : branches.find(std::string(id.node()));
      if (branch == branches.end()) continue;
      const std::string tensor = id.ToString();
      auto found = added.find(tensor);
      if (found == added.end()) {
        std::string name = names.Unique(WantedName(branch->first, id.index()));
        found = added.emplace(tensor, BranchInput(*branch->second, std::move(name))).first;
        found->second.add_input(input);
      }
      input = found->second.name();
    }
  }
  for (auto& [tensor, node] : added) *graph->add_node() = std::move(node);
}

absl::Status AddBranchInputs(Graph* graph) {
  std::vector<Node*> branches;
  for (Node* node : graph->op_nodes()) {
    if (HasBranchOutputs(node->def()) && !SwitchesPredicate(*node)) branches.push_back(node);
  }
  for (Node* branch : branches) TFR_RETURN_IF_ERROR(AddBehind(branch, graph));
  return absl::OkStatus();
}

absl::Status RemoveBranchInputs(Graph* graph) {
  std::vector<Node*> nodes;
  for (Node* node : graph->op_nodes()) {
    if (node->type_string() == kBranchInputOp) nodes.push_back(node);
  }
  for (Node* node : nodes) TFR_RETURN_IF_ERROR(Remove(node, graph));
  if (!nodes.empty()) tensorflow::FixupSourceAndSinkEdges(graph);
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
