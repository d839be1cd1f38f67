// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/load_body.h"

#include <string>

#include "cc/analysis/effects.h"
#include "cc/base/status.h"
#include "cc/expand/call_nodes.h"
#include "cc/expand/place_records.h"
#include "cc/expand/placement.h"
#include "cc/expand/resolve_calls.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::Node;

// Assigns an argument that is a handle or a record to the device where its resource or its record is. By the Placer's
// rules an operator that reads a handle goes there, too. A record that is read decides where the records of this body
// are.
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

}  // namespace

absl::Status LoadBody(BodyFactory* bodies, const DeviceOfHandle& device_of_handle, CalledFunction* function) {
  const std::string& name = function->definition->signature().name();
  TFR_RETURN_IF_ERROR(bodies->Instantiate(name, &function->graph));
  PlaceHandles(function);
  PlaceRecords(function->record_device, function->graph.get());
  TFR_RETURN_IF_ERROR(bodies->Place(name, function->device, device_of_handle, function->graph.get()));
  TFR_RETURN_IF_ERROR(AsInvalidArgument(ResolveCalls(/*suffix=*/"", function->graph.get())));
  for (const Node* node : function->graph->op_nodes()) {
    if (HasEffect(*node)) function->has_effects = true;
    if (ReadsState(node->type_string())) function->reads_state = true;
    if (IsRecall(node->def())) function->is_gradient = true;
  }
  // A gradient runs for its outputs alone: nothing has to wait for stateful operators in it.
  if (function->is_gradient) function->has_effects = function->reads_state = false;
  return absl::OkStatus();
}

}  // namespace tensorflow_recursion
