// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/place_records.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <unordered_set>
#include <vector>

#include "cc/base/disjoint_sets.h"
#include "cc/base/names.h"
#include "cc/expand/call_nodes.h"
#include "cc/expand/colocation.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/variant_op_registry.h"
#include "tensorflow/core/kernels/tensor_list.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DeviceNameUtils;
using tensorflow::Edge;
using tensorflow::Graph;
using tensorflow::Node;

// Whether a device has a kernel for the node. A device that is not fully named is given the benefit of the doubt.
bool HasKernel(const Node& node, const std::string& device) {
  DeviceNameUtils::ParsedName name;
  return !DeviceNameUtils::ParseFullName(device, &name) || !name.has_type ||
         tensorflow::FindKernelDef(tensorflow::DeviceType(name.type), node.def(), nullptr, nullptr).ok();
}

// The CPU in the process that the device belongs to.
std::string HostOf(const std::string& device) {
  DeviceNameUtils::ParsedName name;
  if (!DeviceNameUtils::ParseFullName(device, &name)) return device;
  name.type = tensorflow::DEVICE_CPU;
  name.id = 0;
  name.has_type = name.has_id = true;
  return DeviceNameUtils::ParsedNameToString(name);
}

bool HoldsVariant(const Node& node) {
  if (node.num_outputs() == 0 || node.IsArg() || IsInvoke(node.def())) return false;
  return node.output_type(0) == tensorflow::DT_VARIANT;
}

// Whether the operator works on lists of tensors. Lists of records count as records.
bool IsOfList(const Node& node) {
  tensorflow::DataType element;
  return GetNodeAttr(node.attrs(), "element_dtype", &element).ok() && element != tensorflow::DT_VARIANT;
}

// Whether the operator makes zeros like a variant, or a sum of variants. Its kernel does not say for which types it can
// do that, because each type registers functions of its own for each type of device.
bool IsZeros(const Node& node) { return node.type_string() == "ZerosLike" || node.type_string() == kListOrZerosOp; }
bool IsSum(const Node& node) { return node.type_string() == "AddN" || node.type_string() == "AddV2"; }

// Whether lists have zeros and sums on a device. They have none on devices that a plugin adds.
bool HasListFunctions(const std::string& device) {
  DeviceNameUtils::ParsedName name;
  if (!DeviceNameUtils::ParseFullName(device, &name) || !name.has_type) return true;
  const auto list = tensorflow::TypeIndex::Make<tensorflow::TensorList>();
  auto* const registry = tensorflow::UnaryVariantOpRegistry::Global();
  return registry->GetUnaryOpFn(tensorflow::ZEROS_LIKE_VARIANT_UNARY_OP, name.type, list) != nullptr &&
         registry->GetBinaryOpFn(tensorflow::ADD_VARIANT_BINARY_OP, name.type, list) != nullptr;
}

// Whether the edge's reader takes a list and yields what is in it.
bool TakesApart(const Edge& edge) {
  return !edge.IsControlEdge() && IsOfList(*edge.dst()) && !HoldsVariant(*edge.dst()) &&
         edge.src()->output_type(edge.src_output()) == tensorflow::DT_VARIANT;
}

// Divides the operators that variants pass through into groups: a group has all operators that one variant may pass
// through inside of a frame. A Retain and a Recall end a group, because what they pack and unpack is not the record.
class VariantGroups {
 public:
  explicit VariantGroups(const Graph& graph) : groups_(graph.num_node_ids()), facts_(graph.num_node_ids()) {
    for (const Edge* edge : graph.edges()) {
      if (Passes(*edge)) groups_.Join(edge->src()->id(), edge->dst()->id());
    }
  }

  // What is known of the operators of one group; GroupVariants fills it in.
  struct Facts {
    bool is_list = false;
    // Some operator makes zeros, perhaps of a list; or sums.
    bool has_zeros = false;
    bool has_sums = false;
    // Some operator has no kernel on the device of the records.
    bool lacks_kernel = false;
  };
  Facts& Of(const Node& node) { return facts_[groups_.Root(node.id())]; }

 private:
  static bool Passes(const Edge& edge) {
    return !edge.IsControlEdge() && HoldsVariant(*edge.src()) && HoldsVariant(*edge.dst()) &&
           !IsRecall(edge.src()->def()) && !IsRetain(edge.dst()->def()) &&
           edge.src()->output_type(edge.src_output()) == tensorflow::DT_VARIANT;
  }

  // The nodes by their ids, and the facts of each group by the id that stands for it.
  DisjointSets groups_;
  std::vector<Facts> facts_;
};

VariantGroups GroupVariants(const Graph& body, const std::string& record_device) {
  VariantGroups groups(body);
  for (const Node* node : body.op_nodes()) {
    if (!HoldsVariant(*node)) continue;
    VariantGroups::Facts& facts = groups.Of(*node);
    facts.is_list = facts.is_list || IsOfList(*node);
    facts.has_zeros = facts.has_zeros || IsZeros(*node);
    facts.has_sums = facts.has_sums || IsSum(*node);
    facts.lacks_kernel = facts.lacks_kernel || !HasKernel(*node, record_device);
    for (const Edge* edge : node->out_edges()) {
      if (TakesApart(*edge) && !HasKernel(*edge->dst(), record_device)) facts.lacks_kernel = true;
    }
  }
  return groups;
}

// Frees operators that hold variants from being beside others. Lowering colocates an operator that hands a value out of
// a branch or a loop with the one that makes the value, such as a call. A record need not be beside the call, which the
// user may have pinned elsewhere.
void PartFromOthers(Graph* body) {
  std::unordered_set<std::string> holders;
  for (const Node* node : body->op_nodes()) {
    if (HoldsVariant(*node)) holders.insert(node->name());
  }
  for (Node* node : body->op_nodes()) {
    if (HoldsVariant(*node)) PartFrom([&](const std::string& name) { return holders.count(name) == 0; }, node);
  }
}

bool HasRecords(const Graph& body) {
  const auto nodes = body.op_nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const Node* node) { return IsRetain(node->def()) || IsRecall(node->def()); });
}

// The device that a node goes to; empty if the Placer may choose.
std::string DeviceFor(const Node& node, const std::string& record_device, VariantGroups* groups) {
  if (IsPureGradientOp(node.type_string())) return HasKernel(node, record_device) ? record_device : "";
  if (!HoldsVariant(node)) return "";
  const VariantGroups::Facts& facts = groups->Of(node);
  const bool keeps_pin = facts.is_list && !node.requested_device().empty();
  if (keeps_pin) return "";
  const bool computes_lists = facts.has_zeros || (facts.has_sums && facts.is_list);
  const bool lacks_kernel = facts.lacks_kernel || (computes_lists && !HasListFunctions(record_device));
  const std::string device = lacks_kernel ? HostOf(record_device) : record_device;
  return HasKernel(node, device) ? device : "";
}

}  // namespace

void PlaceRecords(const std::string& record_device, Graph* body) {
  if (!HasRecords(*body)) return;
  PartFromOthers(body);
  VariantGroups groups = GroupVariants(*body, record_device);
  const ColocationGroups colocated(*body);
  // The groups of colocated nodes of which some are on the device of the records.
  std::unordered_set<size_t> held;
  for (Node* node : body->op_nodes()) {
    const std::string device = DeviceFor(*node, record_device, &groups);
    if (device.empty()) continue;
    node->set_assigned_device_name(device);
    if (device == record_device) held.insert(colocated.Of(*node));
  }
  // A pin is ignored where it would separate a list from operators that must be beside it. In lowered loops such
  // operators hand on what is pinned inside of the loop.
  for (Node* node : body->op_nodes()) {
    if (HoldsVariant(*node) && held.count(colocated.Of(*node)) > 0) node->set_assigned_device_name(record_device);
  }
}

}  // namespace tensorflow_recursion
