// SPDX-License-Identifier: Apache-2.0
#include "cc/expand/wiring.h"

#include <algorithm>

#include "cc/base/names.h"
#include "cc/expand/call_nodes.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/tensor_id.h"

namespace tensorflow_recursion {
namespace {

using tensorflow::NodeDef;
using tensorflow::TensorId;

bool IsNeeded(const std::vector<bool>& needed, int value) {
  return value < static_cast<int>(needed.size()) && needed[value];
}

// Drops the types and shapes of those values of a record that nobody reads, because they are not retained.
void DropUnread(const std::vector<bool>& needed, const NodeDef& node, NodeDef* copy) {
  const auto types = node.attr().find("T");
  const auto shapes = node.attr().find("shapes");
  if (types == node.attr().end()) return;
  const int count = types->second.list().type_size();
  auto* kept_types = (*copy->mutable_attr())["T"].mutable_list();
  kept_types->clear_type();
  const bool has_shapes = shapes != node.attr().end() && shapes->second.list().shape_size() == count;
  if (shapes != node.attr().end()) (*copy->mutable_attr())["shapes"].mutable_list()->clear_shape();
  for (int i = 0; i < count; ++i) {
    if (!IsNeeded(needed, i)) continue;
    kept_types->add_type(types->second.list().type(i));
    if (has_shapes) *(*copy->mutable_attr())["shapes"].mutable_list()->add_shape() = shapes->second.list().shape(i);
  }
}

// TensorFlow keeps int32 in the host's memory for any device. A record must not move it to the device's.
void SayWhatIsOnHost(NodeDef* node) {
  const auto types = node->attr().find("T");
  if (types == node->attr().end()) return;
  auto* on_host = (*node->mutable_attr())[IsRetain(*node) ? kInputsOnHostAttr : kOutputsOnHostAttr].mutable_list();
  on_host->clear_i();
  for (int i = 0; i < types->second.list().type_size(); ++i) {
    if (types->second.list().type(i) == tensorflow::DT_INT32) on_host->add_i(i);
  }
}

}  // namespace

Wiring::Wiring(const CallProgram& program, const EmissionNames& names) : program_(program), names_(names) {
  FindRecalls(program.main);
  for (const std::string& name : names.functions()) FindRecalls(program.functions.at(name).body);
}

void Wiring::FindRecalls(const NodeList& list) {
  for (size_t i = 0; i < list.nodes.size(); ++i) {
    const NodeDef& node = list.nodes[i];
    if (list.reachable[i] && IsRecall(node)) recalls_[node.name()] = RecordOwner(node);
  }
}

// Says of each value in the records of `owner` whether it is needed.
const std::vector<bool>& Wiring::NeededOf(const std::string& owner) const {
  static const auto* const none = new std::vector<bool>;
  const auto retained = program_.retained.find(owner);
  return retained == program_.retained.end() ? *none : retained->second.needed;
}

std::string Wiring::Rewired(const std::string& input) const {
  const TensorId id = tensorflow::ParseTensorName(input);
  if (tensorflow::IsTensorIdControl(id)) return input;
  const std::string name(id.node());
  const auto recall = recalls_.find(name);
  if (recall != recalls_.end()) {
    const std::vector<bool>& needed = program_.retained.at(recall->second).needed;
    const auto place = std::count(needed.begin(), needed.begin() + id.index(), true);
    return TensorId(name, static_cast<int>(place)).ToString();
  }
  const SiteNames* site = names_.FindSite(name);
  return site == nullptr || program_.feeds.count(name) ? input : site->returns[id.index()];
}

void Wiring::AddInputs(const NodeDef& node, NodeDef* copy) const {
  const std::vector<bool>* needed = IsRetain(node) ? &program_.retained.at(RecordOwner(node)).needed : nullptr;
  for (int i = 0; i < node.input_size(); ++i) {
    const bool is_control = tensorflow::IsTensorIdControl(tensorflow::ParseTensorName(node.input(i)));
    if (needed == nullptr || is_control || IsNeeded(*needed, i)) copy->add_input(Rewired(node.input(i)));
  }
}

void Wiring::FinishRecord(const NodeDef& node, NodeDef* copy) const {
  DropUnread(NeededOf(RecordOwner(node)), node, copy);
  SayWhatIsOnHost(copy);
}

}  // namespace tensorflow_recursion
