// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/verify_devices.h"

#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_join.h"
#include "cc/base/names.h"
#include "cc/base/status.h"
#include "cc/base/tensorflow_compat.h"
#include "cc/expand/call_nodes.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::DeviceNameUtils;
using tensorflow::FunctionLibraryDefinition;

// By function that is a branch, or a part of a loop: the function whose node names it.
using Holders = std::unordered_map<std::string, std::string>;

Holders FindHolders(const FunctionLibraryDefinition& library) {
  Holders holders;
  for (const std::string& name : library.ListFunctionNames()) {
    for (const tensorflow::NodeDef& node : library.Find(name)->node_def()) {
      if (node.op() == kInvokeOp) continue;
      for (const tensorflow::NameAttrList& part : FunctionsInAttributes(node)) holders.emplace(part.name(), name);
    }
  }
  return holders;
}

// The function that the user wrote, of which `function` is a part.
std::string WholeFunction(const Holders& holders, std::string function) {
  for (size_t i = 0; i < holders.size(); ++i) {  // no longer: a forged library may have cycles
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

}  // namespace

absl::Status VerifyDevices(const tensorflow::Graph& graph, const tensorflow::FunctionLibraryDefinition& library,
                           const tensorflow::DeviceSet& devices, bool allow_soft_placement) {
  const tensorflow::FunctionLibraryDefinition reachable = ReachableFunctions(library, graph);
  for (const std::string& name : reachable.ListFunctionNames()) {
    for (const tensorflow::NodeDef& node : reachable.Find(name)->node_def()) {
      DeviceNameUtils::ParsedName wanted;
      if (node.device().empty() || !DeviceNameUtils::ParseFullName(node.device(), &wanted)) continue;
      DeviceNameUtils::ParsedName process = wanted;
      process.has_type = process.has_id = false;
      const bool softly = Exists(process, devices);
      if (allow_soft_placement ? softly : Exists(wanted, devices)) continue;
      std::vector<std::string> names;
      for (const tensorflow::Device* device : devices.devices()) names.push_back(device->name());
      return InvalidArgument("Function '", WholeFunction(FindHolders(reachable), name), "': node '", node.name(),
                             "' asks for device '", node.device(), "', there are: ", absl::StrJoin(names, ", "),
                             ". Pin it to one of these", softly ? kSoftRemedy : "");
    }
  }
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
