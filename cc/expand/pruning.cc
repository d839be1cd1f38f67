// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/pruning.h"

#include "absl/strings/match.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/expand/call_nodes.h"
#include "tensorflow/core/graph/tensor_id.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::GraphDef;
using tensorflow::NodeDef;
using tensorflow::TensorId;

// The node that makes an input or a tensor: "n" for "n:1" and for "^n".
std::string ProducerOf(const std::string& tensor) { return std::string(tensorflow::ParseTensorName(tensor).node()); }

absl::Status ReadFetch(const std::string& fetch, const Pruner& pruner, CallProgram* program) {
  const TensorId id = tensorflow::ParseTensorName(fetch);
  const std::string node(id.node());
  if (!pruner.Has(node)) return InvalidArgument("Fetch '", fetch, "' is not in the graph");
  Fetch& fetched = program->fetches[node];
  if (tensorflow::IsTensorIdControl(id) || !absl::StrContains(fetch, ':')) {
    fetched.whole = true;
    return absl::OkStatus();
  }
  const NodeDef& def = pruner.Find(node);
  const auto outputs = def.attr().find(kResultTypesAttr);
  if (IsInvoke(def) && (outputs == def.attr().end() || id.index() >= outputs->second.list().type_size())) {
    return InvalidArgument("Fetch '", fetch, "': the call has no such output");
  }
  fetched.outputs.insert(id.index());
  return absl::OkStatus();
}

}  // namespace

absl::Status Pruner::Index() {
  for (int i = 0; i < graph_.node_size(); ++i) {
    if (!index_.emplace(graph_.node(i).name(), i).second) {
      return InvalidArgument("Node '", graph_.node(i).name(), "' appears twice in the graph");
    }
  }
  return absl::OkStatus();
}

absl::Status Pruner::Keep(const std::map<std::string, Fetch>& roots, GraphDef* kept) const {
  std::vector<bool> keep(graph_.node_size(), false);
  std::vector<int> work;
  auto reach = [&](int node) {
    if (!keep[node]) work.push_back(node);
    keep[node] = true;
  };
  for (const auto& root : roots) reach(index_.at(root.first));
  while (!work.empty()) {
    const NodeDef& node = graph_.node(work.back());
    work.pop_back();
    for (const std::string& input : node.input()) {
      const auto producer = index_.find(ProducerOf(input));
      if (producer == index_.end()) {
        return InvalidArgument("Node '", node.name(), "': input '", input, "' is not in the graph");
      }
      reach(producer->second);
    }
  }
  // A part of a function's graph is called with all of its arguments, those too that only a loop reads of whose results
  // nobody reads any: no fetch leads to such a loop.
  for (int i = 0; i < graph_.node_size(); ++i) {
    if (keep[i] || graph_.node(i).op() == "_Arg") *kept->add_node() = graph_.node(i);
  }
  *kept->mutable_library() = graph_.library();
  *kept->mutable_versions() = graph_.versions();
  return absl::OkStatus();
}

absl::Status ReadFetches(const GraphDef& graph, const Pruner& pruner, const std::vector<std::string>& fetches,
                         const std::vector<std::string>& feeds, CallProgram* program) {
  for (const std::string& fetch : fetches) TFR_RETURN_IF_ERROR(ReadFetch(fetch, pruner, program));
  if (fetches.empty()) {
    for (const NodeDef& node : graph.node()) program->fetches[node.name()].whole = true;
  }
  for (const std::string& feed : feeds) {
    const std::string node = ProducerOf(feed);
    if (!pruner.Has(node)) continue;
    program->feeds.insert(node);
    program->fetches[node].whole = true;
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
