// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/control_inputs.h"

#include <utility>

#include "cc/base/names.h"
#include "cc/expand/call_nodes.h"
#include "cc/expand/control_flow_nodes.h"
#include "tensorflow/core/framework/node_def.pb.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::NodeDef;
using tensorflow::TensorId;

const tensorflow::AttrValue::ListValue& ResultTypes(const NodeDef& invoke) {
  return invoke.attr().at(kResultTypesAttr).list();
}

// Whether to wait for the producer would mean something else than to wait for the value. A record, which a call returns
// behind its results, comes when the call is done, so there is no difference.
bool NeedsPivot(const NodeDef& producer, const TensorId& value) {
  if (IsInvoke(producer)) return value.index() < ResultTypes(producer).type_size();
  return IsSwitch(producer);
}

tensorflow::DataType TypeOf(const NodeDef& producer, const TensorId& value) {
  return IsInvoke(producer) ? ResultTypes(producer).type(value.index()) : producer.attr().at("T").type();
}

}  // namespace

std::string ControlInputs::By(const std::string& value) {
  const TensorId id = tensorflow::ParseTensorName(value);
  const NodeDef& producer = list_.nodes[list_.ProducerOf(value)];
  if (IsControl(value) || !NeedsPivot(producer, id)) return "^" + producer.name();
  const auto [known, is_new] = pivots_.emplace(value, "");
  if (!is_new) return "^" + known->second;
  NodeDef pivot;
  pivot.set_name(names_.Unique(producer.name() + "/pivot"));
  pivot.set_op("Identity");
  pivot.set_device(producer.device());
  pivot.add_input(value);
  (*pivot.mutable_attr())["T"].set_type(TypeOf(producer, id));
  known->second = pivot.name();
  list_.Add(std::move(pivot), /*with_effect=*/false);
  return "^" + known->second;
}

}  // namespace tensorflow_recursion
