// SPDX-License-Identifier: Apache-2.0
#include "cc/passes/reference_reads.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/analysis/node_facts.h"
#include "cc/analysis/node_owners.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;

// Whether the executor itself hands the node's inputs on, without a kernel.
bool HasNoKernel(const Node& node) {
  if (node.IsControlFlow() || node.IsRetval()) return true;
  const std::string& op = node.type_string();
  return op == kCallOp || op == kResultOp || op == kRetainOp;
}

bool IsReadWithoutKernel(const tensorflow::Edge& edge) {
  if (edge.IsControlEdge() || !edge.dst()->IsOp() || !HasNoKernel(*edge.dst())) return false;
  return tensorflow::IsRefType(edge.src()->output_type(edge.src_output())) &&
         !tensorflow::IsRefType(edge.dst()->input_type(edge.dst_input()));
}

// Describes an Identity of what `edge` carries, in the same body.
NodeDef ReadOf(const tensorflow::Edge& edge, const std::string& name) {
  const Node& source = *edge.src();
  NodeDef read;
  read.set_name(name);
  read.set_op("Identity");
  read.set_device(source.assigned_device_name().empty() ? source.requested_device() : source.assigned_device_name());
  const int output = edge.src_output();
  read.add_input(output == 0 ? source.name() : absl::StrCat(source.name(), ":", output));
  read.mutable_experimental_debug_info()->add_original_node_names(edge.dst()->name());  // errors name that one
  tensorflow::AddNodeAttr("T", tensorflow::BaseType(source.output_type(edge.src_output())), &read);
  CopyOwner(source.def(), &read);
  return read;
}

using CallsById = std::map<int64_t, std::vector<const Node*>>;

CallsById FindCalls(const Graph& graph) {
  CallsById calls;
  for (const Node* node : graph.op_nodes()) {
    int64_t id = 0;
    if (node->type_string() == kCallOp && tensorflow::GetNodeAttr(node->attrs(), kCallIdAttr, &id).ok()) {
      calls[id].push_back(node);
    }
  }
  return calls;
}

// The nodes after which the reader reads the value of a reference. In stock execution a call is one operator, which
// reads when all of its arguments are there. A merge waits for nothing, because it takes what comes first.
std::vector<Node*> WaitsOf(const tensorflow::Edge& edge, const CallsById& calls) {
  const Node* const reader = edge.dst();
  std::vector<Node*> waits;
  for (const tensorflow::Edge* wait : reader->in_edges()) {
    if (wait->IsControlEdge() && wait->src()->IsOp() && !reader->IsMerge()) waits.push_back(wait->src());
  }
  int64_t id = 0;
  if (reader->type_string() != kCallOp || !tensorflow::GetNodeAttr(reader->attrs(), kCallIdAttr, &id).ok()) {
    return waits;
  }
  for (const Node* argument : calls.at(id)) {
    for (const tensorflow::Edge* input : argument->in_edges()) {
      if (input->src()->IsOp() && input->src() != edge.src()) waits.push_back(input->src());
    }
  }
  return waits;
}

// Whether the edge brings a variable of a loop its value, as from `NextIteration` to `Merge`. Nothing may come between
// the two: a loop's variable is recognized by an Enter and a NextIteration that its Merge reads directly.
bool BringsLoopVariable(const tensorflow::Edge& edge) {
  const Node& from = *edge.src();
  return edge.dst()->IsMerge() && (from.IsNextIteration() || (from.IsEnter() && !IsLoopConstant(from)));
}

// Adds the operator that does for a value what `source` does for a reference: an Enter for a RefEnter.
absl::Status AddPlainTwin(const Node& source, Graph* graph, Node** twin) {
  NodeDef def = source.def();
  def.set_name(graph->NewName(absl::StrCat(source.name(), "/value")));
  def.set_op(source.IsEnter() ? "Enter" : "NextIteration");
  absl::Status status;
  *twin = graph->AddNode(def, &status);
  TFR_RETURN_IF_ERROR(status);
  (*twin)->set_assigned_device_name(source.assigned_device_name());
  for (const tensorflow::Edge* input : source.in_edges()) {
    if (input->IsControlEdge() && input->src()->IsOp()) graph->AddControlEdge(input->src(), *twin);
  }
  return absl::OkStatus();
}

absl::Status Read(const tensorflow::Edge* edge, const CallsById& calls, Graph* graph);

// The reference is read before it enters the loop or its next iteration.
absl::Status ReadLoopVariable(const tensorflow::Edge* edge, const CallsById& calls, Graph* graph) {
  Node* const by_reference = edge->src();
  const tensorflow::Edge* input = nullptr;
  TFR_RETURN_IF_ERROR(by_reference->input_edge(0, &input));
  Node* twin = nullptr;
  TFR_RETURN_IF_ERROR(AddPlainTwin(*by_reference, graph, &twin));
  graph->AddEdge(twin, 0, edge->dst(), edge->dst_input());
  graph->RemoveEdge(edge);
  const tensorflow::Edge* const read = graph->AddEdge(input->src(), input->src_output(), twin, 0);
  if (by_reference->out_edges().empty()) graph->RemoveNode(by_reference);
  return Read(read, calls, graph);
}

absl::Status Read(const tensorflow::Edge* edge, const CallsById& calls, Graph* graph) {
  if (BringsLoopVariable(*edge)) return ReadLoopVariable(edge, calls, graph);
  absl::Status status;
  Node* const read = graph->AddNode(ReadOf(*edge, graph->NewName(absl::StrCat(edge->dst()->name(), "/read"))), &status);
  TFR_RETURN_IF_ERROR(status);
  read->set_assigned_device_name(edge->src()->assigned_device_name());
  for (Node* wait : WaitsOf(*edge, calls)) graph->AddControlEdge(wait, read);
  graph->AddEdge(edge->src(), edge->src_output(), read, 0);
  graph->AddEdge(read, 0, edge->dst(), edge->dst_input());
  graph->RemoveEdge(edge);
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadReferencesByKernels(Graph* graph) {
  std::vector<const tensorflow::Edge*> edges;
  for (const tensorflow::Edge* edge : graph->edges()) {
    if (IsReadWithoutKernel(*edge)) edges.push_back(edge);
  }
  if (edges.empty()) return absl::OkStatus();
  const CallsById calls = FindCalls(*graph);
  for (const tensorflow::Edge* edge : edges) TFR_RETURN_IF_ERROR(Read(edge, calls, graph));
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
