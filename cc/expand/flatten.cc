// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/flatten.h"

#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "cc/analysis/effects.h"
#include "cc/base/status.h"
#include "cc/expand/call_nodes.h"
#include "cc/expand/colocation.h"
#include "tensorflow/core/graph/tensor_id.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Graph;
using tensorflow::GraphDef;
using tensorflow::Node;
using tensorflow::NodeDef;
using tensorflow::TensorId;

// New names of nodes by their names in the body.
using NewNames = std::unordered_map<std::string, std::string>;

std::unordered_set<std::string> NodesWithEffect(const Graph& graph) {
  std::unordered_set<std::string> names;
  for (const Node* node : graph.op_nodes()) {
    if (HasEffect(*node)) names.insert(node->name());
  }
  return names;
}

// New names of all nodes of a body. Results are named last, because an output may have the name of a node, which comes
// first.
NewNames NameNodes(const CalledFunction& function, const GraphDef& body, NameTable* names) {
  NewNames renamed;
  for (const NodeDef& node : body.node()) {
    if (node.op() != "_Retval") renamed[node.name()] = names->Unique(function.prefix + node.name());
  }
  for (const NodeDef& node : body.node()) {
    if (node.op() != "_Retval") continue;
    const auto& output = function.definition->signature().output_arg(node.attr().at("index").i());
    renamed[node.name()] = names->Unique(function.prefix + output.name());
  }
  return renamed;
}

void Rename(const NewNames& renamed, NodeDef* node) {
  node->set_name(renamed.at(node->name()));
  for (std::string& input : *node->mutable_input()) {
    const TensorId id = tensorflow::ParseTensorName(input);
    const std::string& producer = renamed.at(std::string(id.node()));
    input = TensorId(producer, id.index()).ToString();
    if (id.index() == 0) input = producer;
  }
  RenameColocation(renamed, node);
}

void RenameFrames(const std::string& prefix, NameTable* names, GraphDef* body) {
  std::map<std::string, std::string> renamed;
  for (NodeDef& node : *body->mutable_node()) {
    const auto frame = node.mutable_attr()->find("frame_name");
    if (frame == node.mutable_attr()->end()) continue;
    std::string& name = renamed[frame->second.s()];
    if (name.empty()) name = names->Unique(prefix + frame->second.s());
    frame->second.set_s(name);
  }
}

// Makes the body wait for its side effects, and finds the nodes that come after all of them.
absl::Status JoinEffects(const CallProgram& program, CalledFunction* function) {
  const auto is_effect = [&](const Node& node) {
    if (function->is_gradient) return false;
    return IsInvoke(node.def()) ? program.functions.at(CalleeOf(node.def())).has_effects : HasEffect(node);
  };
  return AsInvalidArgument(CollectEffects(function->graph.get(), is_effect, &function->effects));
}

absl::Status FlattenBody(const CallProgram& program, GraphNames* names, CalledFunction* function) {
  TFR_RETURN_IF_ERROR(JoinEffects(program, function));
  std::unordered_set<std::string> with_effect;
  if (!function->is_gradient) with_effect = NodesWithEffect(*function->graph);
  GraphDef body;
  function->graph->ToGraphDef(&body, /*include_flib_def=*/false);
  function->graph.reset();
  const NewNames renamed = NameNodes(*function, body, &names->nodes);
  for (std::string& effect : function->effects) effect = renamed.at(effect);
  RenameFrames(function->prefix, &names->frames, &body);
  function->arguments.resize(function->num_arguments());
  function->outputs.resize(function->num_outputs());
  for (NodeDef& node : *body.mutable_node()) {
    const int position = static_cast<int>(function->body.nodes.size());
    if (node.op() == "_Arg") function->arguments[node.attr().at("index").i()] = position;
    if (node.op() == "_Retval") function->outputs[node.attr().at("index").i()] = position;
    const bool has_effect = with_effect.count(node.name()) > 0;
    Rename(renamed, &node);
    function->body.Add(std::move(node), has_effect);
  }
  return absl::OkStatus();
}

}  // namespace

void FlattenMain(const Graph& main, GraphNames* names, CallProgram* program) {
  const std::unordered_set<std::string> with_effect = NodesWithEffect(main);
  GraphDef nodes;
  main.ToGraphDef(&nodes, /*include_flib_def=*/false);
  for (NodeDef& node : *nodes.mutable_node()) {
    names->nodes.Take(node.name());
    const bool has_effect = with_effect.count(node.name()) > 0;
    program->main.Add(std::move(node), has_effect);
  }
}

absl::Status FlattenBodies(GraphNames* names, CallProgram* program) {
  for (const std::string& name : program->order) {
    TFR_RETURN_IF_ERROR(FlattenBody(*program, names, &program->functions.at(name)));
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
