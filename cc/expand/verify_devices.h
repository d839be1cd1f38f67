// Reports devices and kernels that a function asks for and that are missing.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_VERIFY_DEVICES_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_VERIFY_DEVICES_H_

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/device_set.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow_recursion {

// InvalidArgument if a node of a function that `graph` may call asks for a device that is not in `devices`, or that has
// no kernel for it. With soft placement only the process must exist, and any of `devices` may have the kernel. This
// must be checked here, because nobody else reports it: Grappler would log the Placer's error and go on without the
// transformation, and a dynamic call runs its body where the call is.
absl::Status VerifyDevices(const tensorflow::Graph& graph, const tensorflow::FunctionLibraryDefinition& library,
                           const tensorflow::DeviceSet& devices, bool allow_soft_placement);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_VERIFY_DEVICES_H_
