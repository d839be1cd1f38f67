// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/colocation.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::NodeDef;

// A group that is named after a node begins with this.
constexpr char kColocationPrefix[] = "loc:@";

// The node that a group is named after.
std::string ColocatedNode(const std::string& group) { return std::string(absl::StripPrefix(group, kColocationPrefix)); }

}  // namespace

void PartFrom(const std::function<bool(const std::string& name)>& is_left, tensorflow::Node* node) {
  std::vector<std::string> groups;
  if (!tensorflow::GetNodeAttr(node->attrs(), tensorflow::kColocationAttrName, &groups).ok()) return;
  const auto goes = [&](const std::string& group) { return is_left(ColocatedNode(group)); };
  groups.erase(std::remove_if(groups.begin(), groups.end(), goes), groups.end());
  node->ClearAttr(tensorflow::kColocationAttrName);
  if (!groups.empty()) node->AddAttr(tensorflow::kColocationAttrName, groups);
}

ColocationGroups::ColocationGroups(const tensorflow::Graph& graph) : groups_(0) {
  std::unordered_map<std::string, size_t> numbers;
  for (const tensorflow::Node* node : graph.op_nodes()) numbers[node->name()] = node->id();
  size_t size = graph.num_node_ids();
  std::vector<std::pair<size_t, size_t>> pairs;
  for (const tensorflow::Node* node : graph.op_nodes()) {
    std::vector<std::string> beside;
    if (!tensorflow::GetNodeAttr(node->attrs(), tensorflow::kColocationAttrName, &beside).ok()) continue;
    for (const std::string& group : beside) {
      const auto [other, is_new] = numbers.try_emplace(ColocatedNode(group), size);
      if (is_new) ++size;
      pairs.emplace_back(node->id(), other->second);
    }
  }
  groups_ = DisjointSets(size);
  for (const auto& [node, other] : pairs) groups_.Join(node, other);
}

void RenameColocation(const std::unordered_map<std::string, std::string>& renamed, NodeDef* node) {
  const auto found = node->mutable_attr()->find(tensorflow::kColocationAttrName);
  if (found == node->mutable_attr()->end()) return;
  for (std::string& group : *found->second.mutable_list()->mutable_s()) {
    const auto target = renamed.find(ColocatedNode(group));
    if (target != renamed.end()) group = kColocationPrefix + target->second;
  }
}

void DropDanglingColocation(tensorflow::GraphDef* graph) {
  std::unordered_set<std::string> names;
  for (const NodeDef& node : graph->node()) names.insert(node.name());
  const auto is_dangling = [&](const std::string& group) {
    const bool is_node = absl::StartsWith(group, kColocationPrefix);
    return is_node && !names.count(group.substr(sizeof(kColocationPrefix) - 1));
  };
  for (NodeDef& node : *graph->mutable_node()) {
    const auto found = node.mutable_attr()->find(tensorflow::kColocationAttrName);
    if (found == node.mutable_attr()->end()) continue;
    auto* groups = found->second.mutable_list()->mutable_s();
    groups->erase(std::remove_if(groups->begin(), groups->end(), is_dangling), groups->end());
    if (groups->empty()) node.mutable_attr()->erase(found);
  }
}

}  // namespace tensorflow_recursion
