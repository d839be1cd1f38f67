// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/resolve_calls.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/expand/call_nodes.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;
using tensorflow::NodeDef;

// Lets the call run the forward function, which returns a record, too.
void CallForward(NodeDef* call) {
  auto& attrs = *call->mutable_attr();
  attrs[kCalleeAttr].mutable_func()->set_name(attrs[kForwardAttr].s());
  attrs[kResultTypesAttr].mutable_list()->add_type(tensorflow::DT_VARIANT);
  const auto shapes = attrs.find(kOutputShapesAttr);
  if (shapes != attrs.end() && shapes->second.list().shape_size() > 0) shapes->second.mutable_list()->add_shape();
}

// The definition of the call with its first `num_inputs` inputs only. They are read from the edges, because a pass may
// have changed them.
NodeDef WithInputs(const Node& call, int num_inputs) {
  NodeDef def = call.def();
  (*def.mutable_attr())[kIgnoredTypesAttr].mutable_list()->clear_type();
  std::vector<std::string> sources(num_inputs);
  for (const Edge* edge : call.in_edges()) {
    if (edge->IsControlEdge() || edge->dst_input() >= num_inputs) continue;
    sources[edge->dst_input()] = absl::StrCat(edge->src()->name(), ":", edge->src_output());
  }
  def.clear_input();
  for (const std::string& source : sources) def.add_input(source);
  return def;
}

// Replaces `call` by a node with definition `def`, which keeps the first `num_inputs` inputs.
absl::Status Replace(Node* call, NodeDef def, int num_inputs, Graph* graph) {
  absl::Status status;
  Node* resolved = graph->AddNode(std::move(def), &status);
  TFR_RETURN_IF_ERROR(status);
  resolved->set_assigned_device_name(call->assigned_device_name());
  for (const Edge* edge : call->in_edges()) {
    if (edge->IsControlEdge()) {
      graph->AddControlEdge(edge->src(), resolved);
    } else if (edge->dst_input() < num_inputs) {
      graph->AddEdge(edge->src(), edge->src_output(), resolved, edge->dst_input());
    }
  }
  const std::vector<const Edge*> readers(call->out_edges().begin(), call->out_edges().end());
  for (const Edge* edge : readers) {
    if (edge->IsControlEdge()) {
      graph->AddControlEdge(resolved, edge->dst());
      continue;
    }
    Node* const reader = edge->dst();
    const int output = edge->src_output();
    const int input = edge->dst_input();
    graph->RemoveEdge(edge);
    graph->AddEdge(resolved, output, reader, input);
  }
  graph->RemoveNode(call);
  return absl::OkStatus();
}

bool IsIdentityN(const Node& node) { return node.type_string() == "IdentityN"; }

// Whether the node only packs a value. Conditionals whose branches return all that they compute pack it into optional
// values, and loops around them push these onto lists, one for each value.
bool OnlyPacks(const Node& node) {
  return node.type_string() == "OptionalFromValue" || node.type_string() == "TensorListPushBack";
}

bool OnlyHandsOn(const Node& node) {
  return node.IsIdentity() || IsIdentityN(node) || node.IsControlFlow() || OnlyPacks(node);
}

// The edges by which the node at the end of `edge` hands on what comes in there. It must be one that only hands on.
std::vector<const Edge*> HandedOn(const Edge& edge) {
  std::vector<const Edge*> edges;
  for (const Edge* out : edge.dst()->out_edges()) {
    const bool is_of_another = IsIdentityN(*edge.dst()) && out->src_output() != edge.dst_input();
    if (!out->IsControlEdge() && !is_of_another) edges.push_back(out);
  }
  return edges;
}

// Whether anything reads the record that is output `record`. Operators that only hand it on do not count.
bool IsRecordRead(const Node& call, int record, bool is_body) {
  std::set<std::pair<const Node*, int>> seen;  // nodes with the input that was followed
  std::vector<const Edge*> work;
  for (const Edge* edge : call.out_edges()) {
    if (edge->src_output() == record) work.push_back(edge);
  }
  while (!work.empty()) {
    const Edge& edge = *work.back();
    const Node& reader = *edge.dst();
    work.pop_back();
    if (!OnlyHandsOn(reader)) return true;
    if (!seen.emplace(&reader, edge.dst_input()).second) continue;
    const std::vector<const Edge*> readers = HandedOn(edge);
    if (readers.empty() && reader.IsIdentity() && !is_body) return true;  // it may be fetched
    work.insert(work.end(), readers.begin(), readers.end());
  }
  return false;
}

absl::Status Resolve(Node* call, absl::string_view suffix, bool is_body, Graph* graph) {
  std::vector<tensorflow::DataType> inputs, results;
  if (!GetNodeAttr(call->attrs(), kArgumentTypesAttr, &inputs).ok() ||
      !GetNodeAttr(call->attrs(), kResultTypesAttr, &results).ok()) {
    return absl::OkStatus();  // others report that
  }
  const int record = static_cast<int>(results.size());
  const bool is_forward = IsRecordRead(*call, record, is_body);
  const int num_inputs = static_cast<int>(inputs.size());
  call->ClearAttr(kRecordOfAttr);  // XLA would follow it
  call->AddAttr(kRecordOfAttr, std::vector<tensorflow::NameAttrList>());
  if (!is_forward && call->num_inputs() == num_inputs) return absl::OkStatus();

  NodeDef def = WithInputs(*call, num_inputs);
  if (is_forward) {
    if ((*def.mutable_attr())[kForwardAttr].s().empty()) {
      return InvalidArgument("Call '", call->name(), "' of '", UserName(CalleeOf(def)),
                             "': its record is read, but its attribute ", kForwardAttr, " names no function");
    }
    CallForward(&def);
    absl::StrAppend(def.mutable_name(), suffix);
  }
  return Replace(call, std::move(def), num_inputs, graph);
}

}  // namespace

absl::Status ResolveCalls(absl::string_view suffix, Graph* graph) {
  const bool is_body = IsFunctionGraph(*graph);
  for (Node* call : FindInvokes(*graph)) TFR_RETURN_IF_ERROR(Resolve(call, suffix, is_body, graph));
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
