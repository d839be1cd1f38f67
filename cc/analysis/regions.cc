// SPDX-License-Identifier: Apache-2.0
#include "cc/analysis/regions.h"

#include "cc/analysis/node_facts.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow_recursion {

using tensorflow::Edge;
using tensorflow::Node;

RegionId GraphRegions::FunctionRegion(const std::string& name) {
  auto [position, inserted] = functions_.try_emplace(name);
  if (inserted) position->second = regions_.Add({RegionKind::kFunction, name, kNone});
  return position->second;
}

RegionId GraphRegions::FindFunction(const std::string& name) const {
  auto position = functions_.find(name);
  return position == functions_.end() ? kNone : position->second;
}

RegionId GraphRegions::LoopOf(const Node* enter) const {
  std::string frame;
  if (!tensorflow::GetNodeAttr(enter->attrs(), "frame_name", &frame).ok()) return kNone;
  auto position = loops_.find({region(enter), frame});
  return position == loops_.end() ? kNone : position->second;
}

RegionId GraphRegions::output_region(const Node* node) const {
  if (node->IsEnter()) return LoopOf(node);
  if (node->IsExit()) return regions_[region(node)].parent;
  return region(node);
}

RegionId GraphRegions::FunctionRegionOf(RegionId region) const {
  while (region != kNone && regions_[region].kind == RegionKind::kLoop) region = regions_[region].parent;
  return region;
}

bool GraphRegions::IsInFunction(const Node* node) const { return IsFunctionPart(region(node)); }

bool GraphRegions::IsFunctionPart(RegionId region) const {
  const RegionId index = FunctionRegionOf(region);
  return index != kNone && regions_[index].kind == RegionKind::kFunction;
}

const std::string& GraphRegions::FunctionOf(const Node* node) const {
  const RegionId index = FunctionRegionOf(region(node));
  return regions_[index == kNone ? kRoot : index].name;
}

RegionId GraphRegions::RegionOfSource(const Node* node) {
  if (!owners_.are_known() || owners_.Of(node).empty()) return kRoot;
  return FunctionRegion(owners_.Of(node));
}

absl::Status GraphRegions::FindSources(const tensorflow::Graph& graph, std::vector<const Node*>* ready) {
  for (const Node* node : graph.op_nodes()) {
    if (IsStructural(node)) continue;
    if (IsBodySource(node)) {
      std::string function;
      TFR_RETURN_IF_ERROR(tensorflow::GetNodeAttr(node->attrs(), kFunctionAttr, &function));
      region_of_[node->id()] = FunctionRegion(function);
    } else {
      bool has_input = false;
      for (const Edge* edge : node->in_edges()) has_input |= IsReal(edge);
      if (has_input) continue;
      region_of_[node->id()] = RegionOfSource(node);
    }
    TFR_RETURN_IF_ERROR(Enter(node));
    ready->push_back(node);
  }
  return absl::OkStatus();
}

// Makes the region of the loop that an Enter node opens.
absl::Status GraphRegions::Enter(const Node* node) {
  if (!node->IsEnter()) return absl::OkStatus();
  std::string frame;
  TFR_RETURN_IF_ERROR(tensorflow::GetNodeAttr(node->attrs(), "frame_name", &frame));
  auto [position, inserted] = loops_.try_emplace({region(node), frame});
  if (inserted) position->second = regions_.Add({RegionKind::kLoop, frame, region(node)});
  return absl::OkStatus();
}

absl::Status GraphRegions::Walk(std::vector<const Node*> ready) {
  while (!ready.empty()) {
    const Node* node = ready.back();
    ready.pop_back();
    if (node->IsExit() && regions_[region(node)].kind != RegionKind::kLoop) {
      return InvalidArgument("Node '", node->name(), "': Exit stands outside any loop");
    }
    const RegionId region = output_region(node);
    for (const Edge* edge : node->out_edges()) {
      const Node* dst = edge->dst();
      if (!IsReal(edge) || region_of_[dst->id()] != kNone) continue;
      region_of_[dst->id()] = region;
      TFR_RETURN_IF_ERROR(Enter(dst));
      ready.push_back(dst);
    }
  }
  return absl::OkStatus();
}

absl::Status GraphRegions::Check(const tensorflow::Graph& graph) const {
  for (const Node* node : graph.op_nodes()) {
    if (!IsStructural(node) && region(node) == kNone) {
      return InvalidArgument("Node '", node->name(), "' is part of a cycle that no input reaches");
    }
    if (!owners_.are_known() || IsStructural(node) || FunctionOf(node) == owners_.Of(node)) continue;
    return InvalidArgument("Node '", node->name(), "' is marked as part of '", owners_.Of(node),
                           "', but its inputs are of '", FunctionOf(node), "'");
  }
  for (const Edge* edge : graph.edges()) {
    if (!IsReal(edge)) continue;
    const Region& from = regions_[output_region(edge->src())];
    const Region& to = regions_[region(edge->dst())];
    if (&from == &to) continue;
    return InvalidArgument("Node '", edge->dst()->name(), "' in '", to.name, "' reads node '", edge->src()->name(),
                           "' in '", from.name, "': values pass between functions by calls, and into loops by Enter");
  }
  return absl::OkStatus();
}

absl::Status GraphRegions::Build(const tensorflow::Graph& graph) {
  region_of_.assign(graph.num_node_ids(), kNone);
  regions_.Add({RegionKind::kRoot, "", kNone});
  structural_.Find(graph);
  owners_.Find(graph, structural_);
  std::vector<const Node*> ready;
  TFR_RETURN_IF_ERROR(FindSources(graph, &ready));
  TFR_RETURN_IF_ERROR(Walk(std::move(ready)));
  return Check(graph);
}

}  // namespace tensorflow_recursion
