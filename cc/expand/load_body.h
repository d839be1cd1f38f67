// Makes the body of a function that a call has been bound to: a graph of plain operators, placed.
// SPDX-License-Identifier: Apache-2.0
#ifndef TENSORFLOW_RECURSION_CC_EXPAND_LOAD_BODY_H_
#define TENSORFLOW_RECURSION_CC_EXPAND_LOAD_BODY_H_

#include "absl/status/status.h"
#include "cc/expand/body_factory.h"
#include "cc/expand/call_program.h"

namespace tensorflow_recursion {

// Fills in `graph`, `has_effects`, `reads_state` and `is_gradient` of `function`, whose definition, devices and handles
// are known. Nodes that hold a handle, a record or a contribution are placed first, and the others around them.
// `device_of_handle` says where the resource is whose handle a node of the body reads out of a record.
absl::Status LoadBody(BodyFactory* bodies, const DeviceOfHandle& device_of_handle, CalledFunction* function);

}  // namespace tensorflow_recursion

#endif  // TENSORFLOW_RECURSION_CC_EXPAND_LOAD_BODY_H_
