// SPDX-License-Identifier: Apache-2.0
#include "cc/executor/control_flow.h"

#include <cstdint>
#include <string>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "cc/base/status.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow_recursion {
namespace {

// What an error says of the node that a branch or a switch was made for.
std::string NodeOf(const Region& region, const Op& op) {
  return absl::StrCat("\n\t [[{{node ", region.deciding_nodes.at(region.IdOf(op)), "}}]]");
}

absl::Status NotAPredicate(const Region& region, const Op& op, const tensorflow::Tensor& tensor) {
  // Stock TensorFlow hands on an empty vector in place of a dead value that goes from one function to another.
  const bool was_dead = region.name.empty() && tensor.dims() == 1 && tensor.NumElements() == 0;
  return InvalidArgument("The predicate of a conditional or a loop must be a scalar bool, got ",
                         tensorflow::DataTypeString(tensor.dtype()), " of shape ", tensor.shape().DebugString(),
                         was_dead ? ", as a branch leaves it that was not taken: the gradient of a frozen function "
                                    "whose conditionals were taken apart, with one in a branch of another. Compute it "
                                    "in a tf.function that calls the frozen one, or freeze that by "
                                    "convert_variables_to_constants_v2(function, lower_control_flow=False)"
                                  : "",
                         NodeOf(region, op));
}

}  // namespace

// Both of these return false if the value is no bool; the run has failed then.
inline bool ControlFlow::TakePredicate(Frame* frame, const Op& op, Value* value, bool* result) {
  const bool is_valid = ReadPredicate(frame, op, *value, result);
  value->Release();
  return is_valid;
}

inline bool ControlFlow::ReadPredicate(Frame* frame, const Op& op, const Value& value, bool* result) {
  if (ABSL_PREDICT_TRUE(value.is_scalar())) {
    *result = value.boolean;
    return true;
  }
  const tensorflow::Tensor tensor = TensorFromValue(value, tensorflow::DT_BOOL);
  if (tensor.dtype() == tensorflow::DT_BOOL && tensor.dims() == 0 && tensor.IsInitialized()) {
    *result = tensor.scalar<bool>()();
    return true;
  }
  context_->FailAt(NotAPredicate(*frame->region, op, tensor), frame);
  return false;
}

void ControlFlow::FireSwitch(Frame* frame, const Op& op, Value* inputs) {
  bool side = false;
  if (!TakePredicate(frame, op, &inputs[1], &side)) return inputs[0].Release();
  router_->DeliverDone(frame, op);
  router_->DeliverPort(frame, &frame->region->ports[op.port + side], inputs[0].Take());
}

void ControlFlow::FireBranch(Frame* frame, const Op& op, Value* inputs) {
  bool side = false;
  if (!TakePredicate(frame, op, &inputs[0], &side)) return;
  const Region& region = *frame->region;
  frame->pending()[region.IdOf(op)] = static_cast<uint16_t>(1 + side);
  // All data that waits at gates is taken out of its slots before any of it moves on, because it may go to one of these
  // slots.
  released_.clear();
  for (const OpId gate : region.GatesOf(op)) {
    Value& data = *frame->slots_of(region.ops[gate]);
    if (!data.is_empty()) released_.emplace_back(gate, data.Take());
  }
  const DeathList& dead = region.port_deaths[op.port + !side];
  if (dead.begin != dead.end) router_->Kill(frame, dead);
  for (const auto& [index, data] : released_) {
    const Op& gate = region.ops[index];
    router_->DeliverDone(frame, gate);
    router_->DeliverPort(frame, &region.ports[gate.port + side], data);
  }
  Value predicate = Value::Scalar(0);
  predicate.boolean = side;
  router_->DeliverDone(frame, op);
  router_->DeliverPort(frame, &region.ports[op.port + side], predicate);
}

void ControlFlow::FireSwitchN(Frame* frame, const Op& op, Value* inputs) {
  const tensorflow::Tensor index = TensorFromValue(inputs[1], tensorflow::DT_INT32);
  inputs[1].Release();
  if (index.dims() != 0 || index.dtype() != tensorflow::DT_INT32) {
    inputs[0].Release();
    return context_->FailAt(InvalidArgument("The branch index of a tf.switch_case must be a scalar int32, got ",
                                            tensorflow::DataTypeString(index.dtype()), " of shape ",
                                            index.shape().DebugString(), NodeOf(*frame->region, op)),
                            frame);
  }
  int32_t side = index.scalar<int32_t>()();
  if (side < 0 || side >= op.num_ports) side = op.num_ports - 1;
  for (int32_t i = 0; i < op.num_ports; ++i) {
    if (i != side) router_->Kill(frame, frame->region->port_deaths[op.port + i]);
  }
  router_->DeliverPort(frame, &frame->region->ports[op.port + side], inputs[0].Take());
  router_->DeliverDone(frame, op);
}

void ControlFlow::FireMerge(Frame* frame, const Op& op) {
  Value& slot = *frame->slots_of(op);
  const Value value = slot;
  slot = Value::Dead();  // marks the merge as decided: a later input finds the slot taken
  Value index = Value::Scalar(0);
  index.int32 = static_cast<int32_t>(value.position);
  router_->DeliverPort(frame, &frame->region->ports[op.port + 1], index);
  router_->DeliverPort(frame, &frame->region->ports[op.port], value);
  router_->DeliverDone(frame, op);
}

}  // namespace tensorflow_recursion
