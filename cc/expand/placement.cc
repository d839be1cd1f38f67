// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/placement.h"

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow_recursion {

using tensorflow::Node;

const std::string& DeviceOf(const Node& node) {
  return node.assigned_device_name().empty() ? node.requested_device() : node.assigned_device_name();
}

bool AsksForType(const std::string& device) {
  tensorflow::DeviceNameUtils::ParsedName requested;
  return tensorflow::DeviceNameUtils::ParseFullName(device, &requested) && requested.has_type;
}

bool IsHandle(tensorflow::DataType type) { return type == tensorflow::DT_RESOURCE || type == tensorflow::DT_VARIANT; }

int IndexOf(const Node& node) {
  int index = 0;
  (void)tensorflow::GetNodeAttr(node.attrs(), "index", &index);
  return index;
}

}  // namespace tensorflow_recursion
