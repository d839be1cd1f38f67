// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/load_body.h"

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "cc/analysis/effects.h"
#include "cc/base/status.h"
#include "cc/expand/call_nodes.h"
#include "cc/expand/colocation.h"
#include "cc/expand/placement.h"
#include "cc/expand/resolve_calls.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Graph;
using tensorflow::Node;

// Whether a device has a kernel for the node. A device that is not fully named is given the benefit of the doubt.
bool HasKernel(const Node& node, const std::string& device) {
  tensorflow::DeviceNameUtils::ParsedName name;
  return !tensorflow::DeviceNameUtils::ParseFullName(device, &name) || !name.has_type ||
         tensorflow::FindKernelDef(tensorflow::DeviceType(name.type), node.def(), nullptr, nullptr).ok();
}

bool HoldsVariant(const Node& node) {
  if (node.num_outputs() == 0 || node.IsArg() || IsInvoke(node.def())) return false;
  return node.output_type(0) == tensorflow::DT_VARIANT;
}

// Whether the node reads or writes records or contributions, or may pass one on.
bool HoldsRecord(const Node& node) {
  if (IsRetain(node.def()) || IsPureGradientOp(node.type_string())) return true;
  return HoldsVariant(node) && node.requested_device().empty();
}

// An argument that is a handle or a record goes where what it stands for is. By the Placer's rules whoever reads a
// handle goes there too. A record that is read so decides where the records of this body are.
void PlaceHandles(CalledFunction* function) {
  for (Node* node : function->graph->op_nodes()) {
    if (!node->IsArg() || !IsHandle(node->output_type(0))) continue;
    const std::string& device = function->handles.at(IndexOf(*node)).device;
    if (device.empty()) continue;
    node->set_assigned_device_name(device);
    for (const tensorflow::Edge* edge : node->out_edges()) {
      if (IsRecall(edge->dst()->def())) function->record_device = device;
    }
  }
}

// The groups that cannot be on a device as a whole: a GPU has kernels that make a list and none that take it apart.
std::unordered_set<std::string> GroupsWithoutKernels(const tensorflow::Graph& graph, const ColocationGroups& groups,
                                                     const std::string& device) {
  std::unordered_set<std::string> found;
  for (const Node* node : graph.op_nodes()) {
    if (HoldsVariant(*node) && !HasKernel(*node, device)) found.insert(groups.Of(*node));
  }
  return found;
}

// What is retained stays on one device, because a record is memory of its process.
void PlaceRecords(CalledFunction* function) {
  const auto nodes = function->graph->op_nodes();
  if (std::none_of(nodes.begin(), nodes.end(),
                   [](const Node* node) { return IsRetain(node->def()) || IsRecall(node->def()); })) {
    return;
  }
  const ColocationGroups groups(*function->graph);
  const std::unordered_set<std::string> elsewhere =
      GroupsWithoutKernels(*function->graph, groups, function->record_device);
  std::unordered_set<std::string> held;
  for (Node* node : nodes) {
    if (!HoldsRecord(*node) || !HasKernel(*node, function->record_device)) continue;
    if (elsewhere.count(groups.Of(*node)) > 0) continue;
    node->set_assigned_device_name(function->record_device);
    held.insert(groups.Of(*node));
  }
  // A pin gives way where it parts a list or a sum of contributions from the operators that must be beside it: lowered
  // loops hand on by such operators what is pinned inside of them.
  for (Node* node : nodes) {
    if (HoldsVariant(*node) && held.count(groups.Of(*node)) > 0) {
      node->set_assigned_device_name(function->record_device);
    }
  }
}

}  // namespace

absl::Status LoadBody(BodyFactory* bodies, const DeviceOfHandle& device_of_handle, CalledFunction* function) {
  const std::string& name = function->definition->signature().name();
  TFR_RETURN_IF_ERROR(bodies->Instantiate(name, &function->graph));
  PlaceHandles(function);
  PlaceRecords(function);
  TFR_RETURN_IF_ERROR(bodies->Place(name, function->device, device_of_handle, function->graph.get()));
  TFR_RETURN_IF_ERROR(AsInvalidArgument(ResolveCalls(/*suffix=*/"", function->graph.get())));
  for (const Node* node : function->graph->op_nodes()) {
    if (HasEffect(*node)) function->has_effects = true;
    if (IsRecall(node->def())) function->is_gradient = true;
  }
  // What a gradient computes is computed for whoever asked for it, however stateful.
  if (function->is_gradient) function->has_effects = false;
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
