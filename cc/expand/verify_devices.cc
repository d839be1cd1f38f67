// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/verify_devices.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_join.h"
#include "cc/analysis/function_attributes.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/base/tensorflow_compat.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DeviceNameUtils;
using tensorflow::DeviceType;
using tensorflow::FunctionLibraryDefinition;
using tensorflow::NodeDef;

// For each function that is a branch, or a part of a loop: the function whose node names it.
using Holders = std::unordered_map<std::string, std::string>;

Holders FindHolders(const FunctionLibraryDefinition& library) {
  Holders holders;
  for (const std::string& name : library.ListFunctionNames()) {
    for (const NodeDef& node : library.Find(name)->node_def()) {
      if (node.op() == kInvokeOp) continue;
      for (const tensorflow::NameAttrList& part : FunctionsInAttributes(node)) holders.emplace(part.name(), name);
    }
  }
  return holders;
}

// The function that the user wrote, of which `function` is a part.
std::string WholeFunction(const Holders& holders, std::string function) {
  for (size_t i = 0; i < holders.size(); ++i) {  // ends even if a forged library has cycles
    const auto holder = holders.find(function);
    if (holder == holders.end()) break;
    function = holder->second;
  }
  return UserName(function);
}

bool Exists(const DeviceNameUtils::ParsedName& wanted, const tensorflow::DeviceSet& devices) {
  std::vector<tensorflow::Device*> found;
  devices.FindMatchingDevices(wanted, &found);
  return !found.empty();
}

constexpr char kSoftRemedy[] =
    ", or let others take its place: tf.config.set_soft_device_placement(True), or in a session "
    "ConfigProto(allow_soft_placement=True)";

// Looks at the nodes of all functions that a graph may call.
class Verifier {
 public:
  Verifier(const FunctionLibraryDefinition& functions, const tensorflow::DeviceSet& devices, bool is_soft)
      : functions_(functions), devices_(devices), types_(devices.PrioritizedDeviceTypeList()), is_soft_(is_soft) {}

  absl::Status Verify() const {
    for (const std::string& name : functions_.ListFunctionNames()) {
      for (const NodeDef& node : functions_.Find(name)->node_def()) {
        DeviceNameUtils::ParsedName wanted;
        const bool is_pinned = !node.device().empty() && DeviceNameUtils::ParseFullName(node.device(), &wanted);
        if (is_pinned) TFR_RETURN_IF_ERROR(VerifyDevice(name, node, wanted));
        TFR_RETURN_IF_ERROR(VerifyKernel(name, node, wanted));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status VerifyDevice(const std::string& function, const NodeDef& node,
                            const DeviceNameUtils::ParsedName& wanted) const {
    DeviceNameUtils::ParsedName process = wanted;
    process.has_type = process.has_id = false;
    const bool softly = Exists(process, devices_);
    if (is_soft_ ? softly : Exists(wanted, devices_)) return absl::OkStatus();
    std::vector<std::string> names;
    for (const tensorflow::Device* device : devices_.devices()) names.push_back(device->name());
    return InvalidArgument(Subject(function, node), " asks for device '", node.device(),
                           "', there are: ", absl::StrJoin(names, ", "), ". Pin it to one of these",
                           softly ? kSoftRemedy : "", Place(function, node));
  }

  absl::Status VerifyKernel(const std::string& function, const NodeDef& node,
                            const DeviceNameUtils::ParsedName& wanted) const {
    const std::vector<DeviceType> one = {DeviceType(wanted.type)};
    const bool is_bound = wanted.has_type && !is_soft_;
    if (IsReplaced(node) || HasKernel(is_bound ? one : types_, node)) return absl::OkStatus();
    const std::string what = absl::StrCat("kernel for ", node.op(), " with these attributes: ", SummarizeAttrs(node));
    const std::string kernels = absl::StrCat(". Its kernels are:\n", tensorflow::KernelsRegisteredForOp(node.op()));
    if (is_bound && HasKernel(types_, node)) {
      return InvalidArgument(Subject(function, node), " asks for device '", node.device(), "', which has no ", what,
                             ". Pin it to one that has", kSoftRemedy, kernels, Place(function, node));
    }
    return InvalidArgument(Subject(function, node), ": no device has a ", what, ". There are devices of type ",
                           TypeNames(), kernels, Place(function, node));
  }

  // Whether functions run in place of the node.
  bool IsReplaced(const NodeDef& node) const {
    return functions_.Contains(node.op()) || !FunctionsInAttributes(node).empty();
  }

  // Whether a device of these types has a kernel for the node. True also if something else is wrong with the node,
  // which is reported when its kernel is made.
  static bool HasKernel(const std::vector<DeviceType>& types, const NodeDef& node) {
    const auto has_at_once = [&](const DeviceType& type) { return tensorflow::KernelDefAvailable(type, node); };
    if (std::any_of(types.begin(), types.end(), has_at_once)) return true;
    const tensorflow::OpDef* op = nullptr;
    if (!tensorflow::OpRegistry::Global()->LookUpOpDef(node.op(), &op).ok()) return true;
    NodeDef whole = node;
    tensorflow::AddDefaultsToNodeDef(*op, &whole);
    return std::any_of(types.begin(), types.end(), [&whole](const DeviceType& type) {
      return !absl::IsNotFound(tensorflow::FindKernelDef(type, whole, nullptr, nullptr));
    });
  }

  std::string TypeNames() const {
    return absl::StrJoin(types_, ", ", [](std::string* out, const DeviceType& type) { *out += type.type(); });
  }

  std::string Subject(const std::string& function, const NodeDef& node) const {
    return absl::StrCat("Function '", WholeFunction(FindHolders(functions_), function), "': node '", node.name(), "'");
  }

  // The text by which Python finds the line that made the node.
  static std::string Place(const std::string& function, const NodeDef& node) {
    return absl::StrCat("\n\t [[{{function_node ", function, "}}{{node ", node.name(), "}}]]");
  }

  const FunctionLibraryDefinition& functions_;
  const tensorflow::DeviceSet& devices_;
  const std::vector<DeviceType> types_;
  const bool is_soft_;
};

}  // namespace

absl::Status VerifyDevices(const tensorflow::Graph& graph, const tensorflow::FunctionLibraryDefinition& library,
                           const tensorflow::DeviceSet& devices, bool allow_soft_placement) {
  return Verifier(ReachableFunctions(library, graph), devices, allow_soft_placement).Verify();
}

}  // namespace tensorflow_recursion
